package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
)

// Columns of movements.sql.
const (
	ofID = iota
	ofDescription
	ofDueDate
	ofFreeNumber
	ofInvoiceNumber
	ofDebit
	ofCredit
	ofAttachments
	ofAccountID
	ofPaymentID
	ofShares
	ofLetteringState
	ofLetteringCode
	ofEntryID
)

// Columns of entries.sql.
const (
	ofEntry = iota
	ofEntryDate
	ofEntryDueDate
	ofCurrency
	ofRate
	ofJournalID
	ofSource
	ofThirdPartyID
	ofPartnerMetadata
	ofComment
	ofCreatedAt
	ofAccountedAt
	ofEntryAttachments
)

// A renderer reads rows in the binary format of PostgreSQL, except JSON, which pgx asks for as text. It allocates
// nothing for most of them.
type renderer struct {
	dictionary *dictionary
	entries    pgx.Rows
	movement   movement
	// The last entry that was read, encoded.
	entryID   int64
	entryJSON []byte
	// Dates as text, by the days since the epoch of PostgreSQL: an exercice has few.
	dates map[int32]*string
	// Of the current movement. Its numbers are parts of digits.
	freeNumber, code string
	digits           []byte
	shares           []share
}

// goTo reads entries up to this one. It returns whether it is there: an entry that awaits validation is not.
func (r *renderer) goTo(entryID int64) (bool, error) {
	for r.entryID < entryID {
		if !r.entries.Next() {
			r.entryID = math.MaxInt64
			return false, r.entries.Err()
		}
		row := r.entries.RawValues()
		entry, err := r.entry(row)
		if err != nil {
			return false, err
		}
		r.entryID, r.entryJSON = entry.ProducerID, r.entryJSON[:0]
		if err := encode(&r.entryJSON, entry); err != nil {
			return false, err
		}
	}
	return r.entryID == entryID, nil
}

func (r *renderer) append(chunk *[]byte, row [][]byte) error {
	r.digits = r.digits[:0]
	m := &r.movement
	m.ProducerID = integer(row[ofID])
	m.Description = text(row[ofDescription])
	m.DueDate = r.date(row[ofDueDate])
	m.FreeNumber = textIn(&r.freeNumber, row[ofFreeNumber])
	m.InvoiceNumber = text(row[ofInvoiceNumber])
	debit, credit := integer(row[ofDebit]), integer(row[ofCredit])
	// One of the two is zero, so this cannot overflow.
	m.Value = value{r.decimal(credit, 2), r.decimal(debit, 2), r.decimal(credit-debit, 2)}
	m.Entry = r.entryJSON
	var err error
	if m.Attachments, err = attachmentsOf(row[ofAttachments]); err != nil {
		return err
	}
	m.Account = r.dictionary.accounts[integer(row[ofAccountID])]
	m.Payment = nil
	if row[ofPaymentID] != nil {
		m.Payment = r.dictionary.payments[integer(row[ofPaymentID])]
	}
	m.Analytics = r.analytics(m.Analytics[:0], row[ofShares])
	m.Lettering = lettering{text(row[ofLetteringState]), textIn(&r.code, row[ofLetteringCode])}
	if m.Lettering.State == "partial" {
		r.code = "*" + r.code
	}
	return encode(chunk, m)
}

func (r *renderer) entry(row [][]byte) (*entry, error) {
	attachments, err := attachmentsOf(row[ofEntryAttachments])
	if err != nil {
		return nil, err
	}
	metadata, err := partnerMetadataOf(row[ofPartnerMetadata])
	if err != nil {
		return nil, err
	}
	var named *thirdParty
	if row[ofThirdPartyID] != nil {
		named = r.dictionary.thirdParties[integer(row[ofThirdPartyID])]
	}
	return &entry{
		ProducerID: integer(row[ofEntry]),
		Date:       *r.date(row[ofEntryDate]),
		DueDate:    r.date(row[ofEntryDueDate]),
		Currency:   currency{text(row[ofCurrency]), json.Number(text(row[ofRate]))},
		Journal:    r.dictionary.journals[integer(row[ofJournalID])],
		Properties: properties{
			Source:          source{text(row[ofSource]), named},
			PartnerMetadata: metadata,
			Comment:         textIn(new(string), row[ofComment]),
			CreatedAt:       integer(row[ofCreatedAt])/1e6 + postgresEpoch.Unix(),
			AccountedAt:     *r.date(row[ofAccountedAt]),
		},
		Attachments: attachments,
	}, nil
}

// analytics takes section id, amount in cents, rate in ten-thousandths of a percent, by threes. Those of an axis are
// adjacent.
func (r *renderer) analytics(axes []axis, array []byte) []axis {
	r.shares = r.shares[:0]
	axisID := int64(0)
	for i := arrayHead; i < len(array); i += 3 * arrayElement {
		number := func(place int) int64 { return integer(array[i+place*arrayElement+4:]) }
		id := number(0)
		s := r.dictionary.sections[id]
		if s.axisID != axisID {
			axisID = s.axisID
			axes = append(axes, axis{s.axisID, s.axisCode, s.axisName, r.shares[len(r.shares):]})
		}
		last := &axes[len(axes)-1]
		r.shares = append(r.shares, share{id, r.decimal(number(1), 2), r.decimal(number(2), 4), s.code, s.name})
		last.Sections = r.shares[len(r.shares)-len(last.Sections)-1:]
	}
	return axes
}

// An array of PostgreSQL: its dimensions, then a length before each element of eight bytes.
const arrayHead, arrayElement = 20, 12

var noFiles = json.RawMessage("{}")

// attachmentsOf reads addresses by file name, in the order of the database.
func attachmentsOf(jsonb []byte) (json.RawMessage, error) {
	if jsonb == nil {
		return noFiles, nil
	}
	tokens := json.NewDecoder(bytes.NewReader(jsonb))
	if _, err := tokens.Token(); err != nil {
		return nil, err
	}
	files := []byte{'{'}
	for tokens.More() {
		name, err := tokens.Token()
		if err != nil {
			return nil, err
		}
		address, err := tokens.Token()
		if err != nil {
			return nil, err
		}
		if len(files) > 1 {
			files = append(files, ',')
		}
		if err := encode(&files, name); err != nil {
			return nil, err
		}
		files = append(files, `:{"type":"URL","value":`...)
		if err := encode(&files, address); err != nil {
			return nil, err
		}
		files = append(files, '}')
	}
	return append(files, '}'), nil
}

// PostgreSQL prints blanks between tokens.
func partnerMetadataOf(jsonb []byte) (*partnerMetadata, error) {
	if jsonb == nil {
		return nil, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, jsonb); err != nil {
		return nil, err
	}
	metadata := &partnerMetadata{}
	return metadata, json.Unmarshal(compact.Bytes(), metadata)
}

// decimal writes a whole number of units, exactly, with up to as many decimals: 26444 hundredths are 264.44, 100 are 1.
func (r *renderer) decimal(units int64, decimals int) json.Number {
	start := len(r.digits)
	if units < 0 {
		r.digits = append(r.digits, '-')
	}
	whole, rest, scale := uint64(max(units, -units)), uint64(0), uint64(1)
	for range decimals {
		scale *= 10
	}
	whole, rest = whole/scale, whole%scale
	r.digits = strconv.AppendUint(r.digits, whole, 10)
	if rest > 0 {
		r.digits = append(r.digits, '.')
		for rest > 0 {
			scale /= 10
			r.digits = append(r.digits, byte('0'+rest/scale))
			rest %= scale
		}
	}
	return json.Number(text(r.digits[start:]))
}

var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (r *renderer) date(raw []byte) *string {
	if raw == nil {
		return nil
	}
	days := int32(binary.BigEndian.Uint32(raw))
	date, ok := r.dates[days]
	if !ok {
		date = new(string)
		*date = postgresEpoch.AddDate(0, 0, int(days)).Format(time.DateOnly)
		r.dates[days] = date
	}
	return date
}

func integer(raw []byte) int64 {
	return int64(binary.BigEndian.Uint64(raw))
}

// text is valid until the next row.
func text(raw []byte) string {
	return unsafe.String(unsafe.SliceData(raw), len(raw))
}

// textIn is nil for null, and otherwise points to the place that it fills.
func textIn(place *string, raw []byte) *string {
	if raw == nil {
		return nil
	}
	*place = text(raw)
	return place
}
