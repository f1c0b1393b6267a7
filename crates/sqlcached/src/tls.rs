//! The files of TLS: certificate, key and authorities. Read at the start, on SIGHUP and on `refresh_certs`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use server::{ClientCertificates, Server, TLS_FILE_BYTES_MAX, TlsMaterial};
use tracing::{error, info, warn};

use crate::settings::{
    Chosen, SSL, SSL_CA_FILE, SSL_CERT_FILE, SSL_CRL_FILE, SSL_KEY_FILE, SSL_MIN_PROTOCOL_VERSION,
    SSL_VERIFY_MODE, Setting,
};

/// What others than a key's owner may not do with it, as in PostgreSQL...
const KEY_MODE: u32 = 0o077;
/// ...but where root owns it, a group may read it: the system's certificates lie so.
const ROOT_KEY_MODE: u32 = 0o037;

/// What the settings say; none without TLS.
pub(crate) fn material(chosen: &Chosen) -> Result<Option<TlsMaterial>, String> {
    if !chosen.is_on(&SSL) {
        return Ok(None);
    }
    let Some(certificates) = read(chosen, &SSL_CERT_FILE)? else {
        return Err(
            "ssl (-Z) needs ssl_cert_file (-o ssl_chain_cert), and ssl_key_file (-o ssl_key)".to_owned()
        );
    };
    // Both may be in one file.
    let keys = if path_of(chosen, &SSL_KEY_FILE).is_some() { &SSL_KEY_FILE } else { &SSL_CERT_FILE };
    keep_secret(chosen, keys)?;
    Ok(Some(TlsMaterial {
        certificates,
        key: read(chosen, keys)?.unwrap_or_default(),
        authorities: read(chosen, &SSL_CA_FILE)?,
        revoked: read(chosen, &SSL_CRL_FILE)?,
        only_1_3: chosen.is_word(&SSL_MIN_PROTOCOL_VERSION, "TLSv1.3"),
        clients: match chosen.number(&SSL_VERIFY_MODE) {
            0 => ClientCertificates::Ignored,
            1 => ClientCertificates::Asked,
            _ => ClientCertificates::Demanded,
        },
    }))
}

/// Reads the files again. With a mistake in one all stays as it is.
pub(crate) fn reload(chosen: &Chosen, server: &Server) {
    let reloaded = match material(chosen) {
        Ok(None) => return,
        Ok(Some(material)) => server.reload_tls(&material).map_err(|error| error.to_string()),
        Err(why) => Err(why),
    };
    match reloaded {
        Ok(()) => info!("certificates were read again; new connections use them"),
        Err(why) => error!("TLS was not changed: {why}"),
    }
}

fn path_of<'c>(chosen: &'c Chosen, setting: &Setting) -> Option<&'c Path> {
    Some(chosen.path(setting)).filter(|path| path.as_os_str() != "none")
}

fn read(chosen: &Chosen, setting: &Setting) -> Result<Option<Vec<u8>>, String> {
    let Some(path) = path_of(chosen, setting) else { return Ok(None) };
    let fails = |why: String| format!("{}: {}: {why}", setting.name, path.display());
    if fs::metadata(path).map_err(|error| fails(error.to_string()))?.len() > TLS_FILE_BYTES_MAX {
        return Err(fails(format!("longer than {TLS_FILE_BYTES_MAX} bytes")));
    }
    fs::read(path).map(Some).map_err(|error| fails(error.to_string()))
}

fn keep_secret(chosen: &Chosen, setting: &Setting) -> Result<(), String> {
    let Some(path) = path_of(chosen, setting) else { return Ok(()) };
    let fails = |why: &str| format!("{}: {}: {why}", setting.name, path.display());
    let found = fs::metadata(path).map_err(|error| fails(&error.to_string()))?;
    let forbidden = if found.uid() == 0 { ROOT_KEY_MODE } else { KEY_MODE };
    if found.mode() & forbidden != 0 {
        let why = fails("others than its owner can read the private key; run chmod 600 on it");
        if !chosen.is_given_by_word(setting) {
            return Err(why);
        }
        // So memcached's flag means what it means there: containers make the files of their secrets readable for all.
        warn!("{why}");
    }
    Ok(())
}
