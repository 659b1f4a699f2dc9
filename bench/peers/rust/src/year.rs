//! From rows to chunks of JSON. Movements and entries come over two connections, and are merged by entry id.

use std::borrow::Cow;
use std::mem;
use std::pin::pin;

use bytes::Bytes;
use deadpool_postgres::Pool;
use futures_util::TryStreamExt;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc::Sender;
use tokio::try_join;
use tokio_postgres::Row;
use tokio_postgres::types::{Json, Type};

use crate::Error;
use crate::dictionary::Dictionary;
use crate::movement::{
    Analytics, Attachments, Currency, Entry, Lettering, Movement, Properties, Source, Value,
};
use crate::number::{Decimal, Id};

const CHUNK_BYTES: usize = 256 * 1024;
/// Room for the movement that completes a chunk: a longer one makes its buffer grow.
const MOVEMENT_BYTES: usize = 8 * 1024;

pub struct Year {
    pub schema_id: i64,
    pub folder_id: i64,
    pub exercice_id: i64,
}

impl Year {
    /// Sends the year in chunks, until the client has left.
    pub async fn render(&self, pool: &Pool, chunks: &Sender<Result<Bytes, Error>>) -> Result<(), Error> {
        let (client, other) = try_join!(pool.get(), pool.get())?;
        let dictionary = Dictionary::read(&client, self.folder_id).await?;
        let ids = [self.schema_id, self.folder_id, self.exercice_id];
        // Planned for these ids, each time, in one round trip.
        let parameters = ids.map(|id| (id, Type::INT8));
        let (rows, entries) = try_join!(
            client.query_typed_raw(include_str!("movements.sql"), parameters.clone()),
            other.query_typed_raw(include_str!("entries.sql"), parameters),
        )?;
        let (mut rows, mut entries) = (pin!(rows), pin!(entries));
        let mut chunk = new_chunk();
        chunk.push(b'[');
        let mut entry = (0_i64, Box::<RawValue>::default());
        let mut is_first = true;
        while let Some(row) = rows.try_next().await? {
            let entry_id: i64 = row.get(of::ENTRY_ID);
            while entry.0 < entry_id {
                entry = match entries.try_next().await? {
                    Some(row) => (row.get(of_entry::ID), to_raw_value(&entry_of(&row, &dictionary)?)?),
                    None => (i64::MAX, Box::default()),
                };
            }
            // Its entry awaits validation.
            if entry.0 != entry_id {
                continue;
            }
            if !mem::take(&mut is_first) {
                chunk.push(b',');
            }
            serde_json::to_writer(&mut chunk, &movement_of(&row, &entry.1, &dictionary))?;
            if chunk.len() >= CHUNK_BYTES
                && chunks.send(Ok(mem::replace(&mut chunk, new_chunk()).into())).await.is_err()
            {
                return Ok(());
            }
        }
        chunk.push(b']');
        // Fails if the client has left, which ends the answer, too.
        let _ = chunks.send(Ok(chunk.into())).await;
        Ok(())
    }
}

fn new_chunk() -> Vec<u8> {
    Vec::with_capacity(CHUNK_BYTES + MOVEMENT_BYTES)
}

/// Columns of movements.sql.
mod of {
    pub const ID: usize = 0;
    pub const DESCRIPTION: usize = 1;
    pub const DUE_DATE: usize = 2;
    pub const FREE_NUMBER: usize = 3;
    pub const INVOICE_NUMBER: usize = 4;
    pub const DEBIT: usize = 5;
    pub const CREDIT: usize = 6;
    pub const ATTACHMENTS: usize = 7;
    pub const ACCOUNT_ID: usize = 8;
    pub const PAYMENT_ID: usize = 9;
    pub const SHARES: usize = 10;
    pub const LETTERING_STATE: usize = 11;
    pub const LETTERING_CODE: usize = 12;
    pub const ENTRY_ID: usize = 13;
}

/// Columns of entries.sql.
mod of_entry {
    pub const ID: usize = 0;
    pub const DATE: usize = 1;
    pub const DUE_DATE: usize = 2;
    pub const CURRENCY: usize = 3;
    pub const RATE: usize = 4;
    pub const JOURNAL_ID: usize = 5;
    pub const SOURCE: usize = 6;
    pub const THIRD_PARTY_ID: usize = 7;
    pub const PARTNER_METADATA: usize = 8;
    pub const COMMENT: usize = 9;
    pub const CREATED_AT: usize = 10;
    pub const ACCOUNTED_AT: usize = 11;
    pub const ATTACHMENTS: usize = 12;
}

fn movement_of<'a>(row: &'a Row, entry: &'a RawValue, dictionary: &'a Dictionary) -> Movement<'a> {
    let (debit, credit): (i64, i64) = (row.get(of::DEBIT), row.get(of::CREDIT));
    Movement {
        producer_id: Id(row.get(of::ID)),
        description: row.get(of::DESCRIPTION),
        due_date: row.get(of::DUE_DATE),
        free_number: row.get(of::FREE_NUMBER),
        invoice_number: row.get(of::INVOICE_NUMBER),
        // One of the two is zero, so this cannot overflow.
        value: Value { credit: Decimal(credit), debit: Decimal(debit), amount: Decimal(credit - debit) },
        entry,
        attachments: attachments_of(row, of::ATTACHMENTS),
        account: &dictionary.accounts[&row.get(of::ACCOUNT_ID)],
        payment: row.get::<_, Option<i64>>(of::PAYMENT_ID).map(|id| &dictionary.payments[&id]),
        analytics: Analytics { shares: row.get(of::SHARES), dictionary },
        lettering: lettering_of(row),
    }
}

/// The code of a partial lettering is shown after an asterisk.
fn lettering_of(row: &Row) -> Lettering<'_> {
    let state = row.get(of::LETTERING_STATE);
    let code: Option<&str> = row.get(of::LETTERING_CODE);
    let value =
        code.map(|code| if state == "partial" { Cow::from(format!("*{code}")) } else { Cow::from(code) });
    Lettering { state, value }
}

fn entry_of<'a>(row: &'a Row, dictionary: &'a Dictionary) -> Result<Entry<'a>, Error> {
    let rate: Option<&str> = row.get(of_entry::RATE);
    let third_party_id: Option<i64> = row.get(of_entry::THIRD_PARTY_ID);
    Ok(Entry {
        producer_id: Id(row.get(of_entry::ID)),
        date: row.get(of_entry::DATE),
        due_date: row.get(of_entry::DUE_DATE),
        currency: Currency { code: row.get(of_entry::CURRENCY), rate: rate.map(serde_json::from_str).transpose()? },
        journal: &dictionary.journals[&row.get(of_entry::JOURNAL_ID)],
        additional_producer_properties: Properties {
            source: Source {
                name: row.get(of_entry::SOURCE),
                third_party: third_party_id.map(|id| &dictionary.third_parties[&id]),
            },
            partner_metadata: row
                .get::<_, Option<Json<_>>>(of_entry::PARTNER_METADATA)
                .map(|Json(metadata)| metadata),
            comment: row.get(of_entry::COMMENT),
            created_at: row.get(of_entry::CREATED_AT),
            accounted_at: row.get(of_entry::ACCOUNTED_AT),
        },
        attachments: attachments_of(row, of_entry::ATTACHMENTS),
    })
}

fn attachments_of(row: &Row, column: usize) -> Attachments {
    Attachments(row.get::<_, Option<Json<_>>>(column).map(|Json(addresses)| addresses))
}
