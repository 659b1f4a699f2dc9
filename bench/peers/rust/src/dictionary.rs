//! The journals, accounts, payments, sections and third parties that movements refer to, by id.

use std::collections::HashMap;

use serde::Serialize;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use crate::Error;
use crate::number::Id;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    producer_id: Id,
    customer_reference_code: String,
    name: String,
    r#type: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    producer_id: Id,
    number: String,
    name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    producer_id: Id,
    name: &'static str,
    code: &'static str,
}

#[derive(Serialize)]
pub struct ThirdParty {
    name: String,
    code: String,
}

pub struct Section {
    pub code: String,
    pub name: String,
    pub axis_id: i64,
    pub axis_code: String,
    pub axis_name: String,
}

pub struct Dictionary {
    pub journals: HashMap<i64, Journal>,
    pub accounts: HashMap<i64, Account>,
    pub payments: HashMap<i64, Payment>,
    pub sections: HashMap<i64, Section>,
    pub third_parties: HashMap<i64, ThirdParty>,
}

impl Dictionary {
    pub async fn read(client: &Client, folder_id: i64) -> Result<Self, Error> {
        let of_folder = [(&folder_id as _, Type::INT8)];
        // Sent at once, answered in order.
        let (journals, accounts, payments, sections, third_parties) = tokio::try_join!(
            client.query_typed("select id, code, name, type from journals where folder_id = $1", &of_folder),
            client.query_typed("select id, number, name from accounts where folder_id = $1", &of_folder),
            client.query_typed("select id, code from payments where folder_id = $1", &of_folder),
            client.query_typed(
                "select n.id, n.code, n.name, x.id, x.code, x.name from sections n
                 join axes x on (x.schema_id, x.folder_id, x.id) = (n.schema_id, n.folder_id, n.axis_id)
                 where n.folder_id = $1",
                &of_folder
            ),
            client.query_typed("select id, name, code from third_parties", &[]),
        )?;
        Ok(Self {
            journals: by_id(journals, |row| Journal {
                producer_id: Id(row.get(0)),
                customer_reference_code: row.get(1),
                name: row.get(2),
                r#type: journal_label(row.get(3)).to_owned(),
            }),
            accounts: by_id(accounts, |row| Account {
                producer_id: Id(row.get(0)),
                number: row.get(1),
                name: row.get(2),
            }),
            payments: by_id(payments, |row| {
                let (name, code) = payment_mode(row.get(1));
                Payment { producer_id: Id(row.get(0)), name, code }
            }),
            sections: by_id(sections, |row| Section {
                code: row.get(1),
                name: row.get(2),
                axis_id: row.get(3),
                axis_code: row.get(4),
                axis_name: row.get(5),
            }),
            third_parties: by_id(third_parties, |row| ThirdParty { name: row.get(1), code: row.get(2) }),
        })
    }
}

fn by_id<T>(rows: Vec<Row>, item: impl Fn(&Row) -> T) -> HashMap<i64, T> {
    rows.iter().map(|row| (row.get(0), item(row))).collect()
}

/// See src/formats/mad/journal.ts.
fn journal_label(code: &str) -> &str {
    match code {
        "ACH" => "Achat",
        "VTE" => "Vente",
        "BQ" => "Banque",
        "CAISSE" => "Caisse",
        "A_EXT" => "À extourner",
        "EXT" => "Extourne",
        "AN" => "À Nouveaux",
        "NFD" => "Note de Frais",
        "RBAL" => "Reprise Balance",
        "OD_AUDIT" => "OD Audit",
        "OD_PAIE" => "OD Paie",
        "OD_LET" => "OD Lettrage",
        "OD_DECL_FISCALE" => "OD TVA",
        "OD_EXC" => "OD Extracomptable",
        other => other,
    }
}

/// See src/formats/payment.ts.
fn payment_mode(code: &str) -> (&'static str, &'static str) {
    match code {
        "CB" => ("Carte Bleue", "CB"),
        "VIRT" => ("Virement", "VIR"),
        "ESP" => ("Espèce", "ESP"),
        "PRLV" => ("Prélèvement", "PRE"),
        "LCR" => ("Lettre de change", "LCR"),
        _ => ("Chèque", "CHQ"),
    }
}
