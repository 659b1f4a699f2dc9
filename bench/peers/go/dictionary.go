package main

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// What movements refer to, by id.
type dictionary struct {
	journals     map[int64]*journal
	accounts     map[int64]*account
	payments     map[int64]*payment
	sections     map[int64]*section
	thirdParties map[int64]*thirdParty
}

type section struct {
	code, name         string
	axisID             int64
	axisCode, axisName string
}

func readDictionary(ctx context.Context, conn *pgx.Conn, folder int64) (*dictionary, error) {
	d := &dictionary{
		journals:     map[int64]*journal{},
		accounts:     map[int64]*account{},
		payments:     map[int64]*payment{},
		sections:     map[int64]*section{},
		thirdParties: map[int64]*thirdParty{},
	}
	batch := &pgx.Batch{}
	// each calls take with every row, once the batch is answered.
	each := func(query *pgx.QueuedQuery, take func(rows pgx.Rows) error) {
		query.Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := take(rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	each(batch.Queue("select id, code, name, type from journals where folder_id = $1", folder), func(rows pgx.Rows) error {
		j := &journal{}
		err := rows.Scan(&j.ProducerID, &j.Code, &j.Name, &j.Type)
		if label, ok := journalLabels[j.Type]; ok {
			j.Type = label
		}
		d.journals[j.ProducerID] = j
		return err
	})
	each(batch.Queue("select id, number, name from accounts where folder_id = $1", folder), func(rows pgx.Rows) error {
		a := &account{}
		err := rows.Scan(&a.ProducerID, &a.Number, &a.Name)
		d.accounts[a.ProducerID] = a
		return err
	})
	each(batch.Queue("select id, code from payments where folder_id = $1", folder), func(rows pgx.Rows) error {
		p := &payment{}
		var code string
		err := rows.Scan(&p.ProducerID, &code)
		mode, ok := paymentModes[code]
		if !ok {
			mode = paymentModes["CHQ"]
		}
		p.Name, p.Code = mode.name, mode.code
		d.payments[p.ProducerID] = p
		return err
	})
	sections := `select n.id, n.code, n.name, x.id, x.code, x.name from sections n
		join axes x on (x.schema_id, x.folder_id, x.id) = (n.schema_id, n.folder_id, n.axis_id)
		where n.folder_id = $1`
	each(batch.Queue(sections, folder), func(rows pgx.Rows) error {
		var id int64
		s := &section{}
		err := rows.Scan(&id, &s.code, &s.name, &s.axisID, &s.axisCode, &s.axisName)
		d.sections[id] = s
		return err
	})
	each(batch.Queue("select id, name, code from third_parties"), func(rows pgx.Rows) error {
		var id int64
		t := &thirdParty{}
		err := rows.Scan(&id, &t.Name, &t.Code)
		d.thirdParties[id] = t
		return err
	})
	return d, conn.SendBatch(ctx, batch).Close()
}

// See src/formats/mad/journal.ts.
var journalLabels = map[string]string{
	"ACH":             "Achat",
	"VTE":             "Vente",
	"BQ":              "Banque",
	"CAISSE":          "Caisse",
	"A_EXT":           "À extourner",
	"EXT":             "Extourne",
	"AN":              "À Nouveaux",
	"NFD":             "Note de Frais",
	"RBAL":            "Reprise Balance",
	"OD":              "OD",
	"OD_AUDIT":        "OD Audit",
	"OD_PAIE":         "OD Paie",
	"OD_LET":          "OD Lettrage",
	"OD_DECL_FISCALE": "OD TVA",
	"OD_EXC":          "OD Extracomptable",
}

// See src/formats/payment.ts.
var paymentModes = map[string]struct{ name, code string }{
	"CB":   {"Carte Bleue", "CB"},
	"VIRT": {"Virement", "VIR"},
	"ESP":  {"Espèce", "ESP"},
	"CHQ":  {"Chèque", "CHQ"},
	"PRLV": {"Prélèvement", "PRE"},
	"LCR":  {"Lettre de change", "LCR"},
}
