//! The year of the bench in Rust: axum, tokio-postgres, serde_json. See ../README.md.
//!
//! `DATABASE_URL=… SCHEMA_ID=… FOLDER_ID=… EXERCICE_ID=… year-in-rust` listens and prints its address.

mod dictionary;
mod movement;
mod number;
mod year;

use std::env;
use std::io::{Write, stdout};
use std::str::FromStr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, serve};
use deadpool_postgres::Pool;
use tokio::io::{AsyncReadExt, stdin};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_postgres::{Config, NoTls};
use tokio_stream::wrappers::ReceiverStream;

use crate::year::Year;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Chunks that wait for the client: each has up to 256 KB.
const CHUNKS_WAITING: usize = 4;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let pool = Pool::builder(deadpool_postgres::Manager::new(connection()?, NoTls)).max_size(8).build()?;
    let year = Year {
        schema_id: setting("SCHEMA_ID")?.parse()?,
        folder_id: setting("FOLDER_ID")?.parse()?,
        exercice_id: setting("EXERCICE_ID")?.parse()?,
    };
    let app = Router::new().route("/", get(answer)).with_state(Arc::new((pool, year)));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    stdout().flush()?;
    tokio::select! {
        ended = async { serve(listener, app).await } => ended?,
        _ = end_of_input() => {}
    }
    Ok(())
}

/// The bench has ended when standard input does.
async fn end_of_input() {
    let mut byte = [0];
    while let Ok(1) = stdin().read(&mut byte).await {}
}

async fn answer(State(state): State<Arc<(Pool, Year)>>) -> impl IntoResponse {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        let (pool, year) = &*state;
        if let Err(error) = year.render(pool, &sender).await {
            eprintln!("{error}");
            // Breaks the answer off. The client may be gone, too.
            let _ = sender.send(Err(error)).await;
        }
    });
    ([(CONTENT_TYPE, "application/json")], Body::from_stream(ReceiverStream::new(receiver)))
}

/// The tenant and the settings with which the service reads: see ../peer.ts.
fn connection() -> Result<Config, Error> {
    let mut config = Config::from_str(&setting("DATABASE_URL")?)?;
    let own = format!(
        "-c search_path=grandlivre -c grandlivre.schema_id={} \
         -c max_parallel_workers_per_gather=0 -c random_page_cost=1.1 -c work_mem=32MB",
        setting("SCHEMA_ID")?
    );
    let all = format!("{} {own}", config.get_options().unwrap_or_default());
    config.options(all).application_name("grandlivre bench");
    Ok(config)
}

fn setting(name: &str) -> Result<String, Error> {
    env::var(name).map_err(|_| format!("{name} is missing: the bench starts this program").into())
}
