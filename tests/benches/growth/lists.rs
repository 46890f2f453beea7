//! What the API shows of many orders at once.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use tests::bench::Wire;

use crate::store::Figures;

/// Times that each is asked for.
const TIMES: usize = 41;
/// How far the deep page is from the first.
const PAGES_DEEP: usize = 3;

/// Paths that a server of this version answers; one that it does not know is left out.
const PATHS: [(&str, &str); 6] = [
    ("list, all", "/orders?limit=50"),
    ("list, Processed", "/orders?state=Processed&limit=50"),
    ("list, Error", "/orders?state=Error&limit=50"),
    ("list, Pending", "/orders?state=Pending&limit=50"),
    ("overview", "/overview"),
    ("search, by a step's error", "/orders?reason=exhausted&limit=50"),
];

pub(crate) async fn measure(address: SocketAddr, figures: &mut Figures) -> io::Result<()> {
    let mut wire = Wire::open(address).await?;
    for (name, path) in PATHS {
        time(&mut wire, name, path, figures).await?;
    }
    let mut path = PATHS[1].1.to_owned();
    for _ in 0..PAGES_DEEP {
        let Some(cursor) = cursor(&mut wire, &path).await? else { return Ok(()) };
        path = format!("{}&cursor={cursor}", PATHS[1].1);
    }
    time(&mut wire, "list, Processed, a later page", &path, figures).await
}

async fn time(wire: &mut Wire, name: &str, path: &str, figures: &mut Figures) -> io::Result<()> {
    let mut took_ms = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let began = Instant::now();
        if get(wire, path).await?.0 != 200 {
            return Ok(());
        }
        took_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
    }
    took_ms.sort_by(f64::total_cmp);
    figures.add(&format!("{name}, ms"), false, 0.3, took_ms[TIMES / 2]);
    Ok(())
}

async fn cursor(wire: &mut Wire, path: &str) -> io::Result<Option<String>> {
    let (_, page) = get(wire, path).await?;
    Ok(page["NextCursor"].as_str().map(str::to_owned))
}

async fn get(wire: &mut Wire, path: &str) -> io::Result<(u16, serde_json::Value)> {
    wire.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await?;
    let answer = wire.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((answer.status(), serde_json::from_slice(answer.body).unwrap_or_default()))
}
