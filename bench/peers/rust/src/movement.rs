//! The shape of a movement. Text is borrowed from its row, what it refers to from the dictionary.

use std::borrow::Cow;

use chrono::serde::ts_seconds;
use chrono::{DateTime, NaiveDate, Utc};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use crate::dictionary::{Account, Dictionary, Journal, Payment, ThirdParty};
use crate::number::{Decimal, Id};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Movement<'a> {
    pub producer_id: Id,
    pub description: &'a str,
    pub due_date: Option<NaiveDate>,
    pub free_number: Option<&'a str>,
    pub invoice_number: &'a str,
    pub value: Value,
    /// An [`Entry`], written once for all its movements.
    pub entry: &'a RawValue,
    pub attachments: Attachments,
    pub account: &'a Account,
    pub payment: Option<&'a Payment>,
    pub analytics: Analytics<'a>,
    pub lettering: Lettering<'a>,
}

#[derive(Serialize)]
pub struct Value {
    pub credit: Decimal<100>,
    pub debit: Decimal<100>,
    pub amount: Decimal<100>,
}

#[derive(Serialize)]
pub struct Lettering<'a> {
    pub state: &'a str,
    pub value: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry<'a> {
    pub producer_id: Id,
    pub date: NaiveDate,
    pub due_date: Option<NaiveDate>,
    pub currency: Currency<'a>,
    pub journal: &'a Journal,
    pub additional_producer_properties: Properties<'a>,
    pub attachments: Attachments,
}

#[derive(Serialize)]
pub struct Currency<'a> {
    pub code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Properties<'a> {
    pub source: Source<'a>,
    pub partner_metadata: Option<PartnerMetadata>,
    pub comment: Option<&'a str>,
    #[serde(with = "ts_seconds")]
    pub created_at: DateTime<Utc>,
    pub accounted_at: NaiveDate,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Source<'a> {
    pub name: &'a str,
    pub third_party: Option<&'a ThirdParty>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PartnerMetadata {
    #[serde(default)]
    partner_id: Json,
    #[serde(default)]
    json: Json,
}

/// Addresses by file name, in the order of the database.
pub struct Attachments(pub Option<Map<String, Json>>);

impl Serialize for Attachments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Attachment<'a> {
            r#type: &'a str,
            value: &'a Json,
        }
        let mut files = serializer.serialize_map(None)?;
        for (name, value) in self.0.iter().flatten() {
            files.serialize_entry(name, &Attachment { r#type: "URL", value })?;
        }
        files.end()
    }
}

/// Shares: section id, amount in cents, rate in ten-thousandths of a percent, by threes. Those of an axis are adjacent.
pub struct Analytics<'a> {
    pub shares: Option<Vec<i64>>,
    pub dictionary: &'a Dictionary,
}

impl Serialize for Analytics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (shares, _) = self.shares.as_deref().unwrap_or_default().as_chunks::<3>();
        let axis_of = |share: &[i64; 3]| self.dictionary.sections[&share[0]].axis_id;
        serializer.collect_seq(
            shares
                .chunk_by(|one, next| axis_of(one) == axis_of(next))
                .map(|shares| Axis { shares, dictionary: self.dictionary }),
        )
    }
}

struct Axis<'a> {
    shares: &'a [[i64; 3]],
    dictionary: &'a Dictionary,
}

impl Serialize for Axis<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shared<'a> {
            producer_id: Id,
            amount: Decimal<100>,
            rate: Decimal<10_000>,
            code: &'a str,
            name: &'a str,
        }
        struct Sections<'a>(&'a Axis<'a>);
        impl Serialize for Sections<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let Axis { shares, dictionary } = self.0;
                serializer.collect_seq(shares.iter().map(|&[id, amount, rate]| {
                    let section = &dictionary.sections[&id];
                    Shared {
                        producer_id: Id(id),
                        amount: Decimal(amount),
                        rate: Decimal(rate),
                        code: &section.code,
                        name: &section.name,
                    }
                }))
            }
        }
        let section = &self.dictionary.sections[&self.shares[0][0]];
        let mut axis = serializer.serialize_map(None)?;
        axis.serialize_entry("producerId", &Id(section.axis_id))?;
        axis.serialize_entry("code", &section.axis_code)?;
        axis.serialize_entry("name", &section.axis_name)?;
        axis.serialize_entry("sections", &Sections(self))?;
        axis.end()
    }
}
