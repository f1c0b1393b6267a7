//! The files of access: rules, roles, users. Read at the start and on SIGHUP; roles are written when they change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use engine::Engine;
use engine::auth::{Access, FileError, Maps, Roles, Rules, Users};
use tracing::{error, info, warn};

use crate::replace::{SECRET, replace};
use crate::settings::{
    AUDIT_FILE, AUTH_FILE, Chosen, ENABLE_SASL, HBA_FILE, IDENT_FILE, ROLES_FILE, SSL, SSL_CA_FILE, Setting,
};

/// What others than the owner may not do with a file that passwords could be guessed from.
const SECRET_MODE: u32 = 0o027;

/// Reads all files and puts them in force.
pub(crate) fn start(chosen: &Chosen, engine: &Engine) -> Result<(), String> {
    if let Some(path) = path_of(chosen, &ROLES_FILE) {
        if !path.exists() {
            make(path)?;
        }
        let path = path.to_owned();
        engine.access.on_change(Box::new(move |roles| {
            replace(&path, &roles.to_file(), SECRET).map_err(|error| format!("{}: {error}", path.display()))
        }));
    }
    engine.access.set(load(chosen)?);
    set_audit_file(chosen, engine)
}

fn set_audit_file(chosen: &Chosen, engine: &Engine) -> Result<(), String> {
    let path = path_of(chosen, &AUDIT_FILE);
    let fails =
        |error| format!("audit_file: {}: {error}", path.unwrap_or_else(|| Path::new("none")).display());
    engine.set_audit_file(path).map_err(fails)
}

/// Reads them again. A mistake in one keeps all as they are.
pub(crate) fn reload(chosen: &Chosen, engine: &Engine) {
    match load(chosen) {
        Ok(access) => engine.access.set(access),
        Err(why) => error!("access was not changed: {why}"),
    }
    if let Err(why) = set_audit_file(chosen, engine) {
        error!("the audit log goes on as it was: {why}");
    }
}

fn load(chosen: &Chosen) -> Result<Access, String> {
    let rules = read(chosen, &HBA_FILE, Rules::parse)?.unwrap_or_default();
    let maps = read(chosen, &IDENT_FILE, Maps::parse)?.unwrap_or_default();
    let rules = rules
        .with_maps(maps)
        .map_err(|map| format!("hba_file: a rule uses the map {map}, which is not in ident_file"))?;
    let roles = read(chosen, &ROLES_FILE, Roles::parse)?;
    let users = read(chosen, &AUTH_FILE, Users::parse)?;
    let has_authorities = chosen.is_on(&SSL) && path_of(chosen, &SSL_CA_FILE).is_some();
    if rules.ask_for_certificates() && !has_authorities {
        return Err("hba_file: a rule looks at certificates, which needs ssl = on and ssl_ca_file".to_owned());
    }
    if rules.ask_for_encryption() && !chosen.is_on(&SSL) {
        warn!("hba_file: hostssl matches nothing without ssl = on");
    }
    let always = chosen.is_on(&ENABLE_SASL);
    if always && roles.is_none() && users.is_none() {
        return Err("enable_sasl (-S) needs roles_file or auth_file (-Y)".to_owned());
    }
    Ok(Access { rules, roles, users, always })
}

fn path_of<'c>(chosen: &'c Chosen, setting: &Setting) -> Option<&'c Path> {
    Some(chosen.path(setting)).filter(|path| path.as_os_str() != "none")
}

fn read<T>(
    chosen: &Chosen,
    setting: &Setting,
    parse: impl Fn(&str) -> Result<T, FileError>,
) -> Result<Option<T>, String> {
    let Some(path) = path_of(chosen, setting) else { return Ok(None) };
    let fails = |why: String| format!("{}: {}: {why}", setting.name, path.display());
    let text = fs::read_to_string(path).map_err(|error| fails(error.to_string()))?;
    let mode = fs::metadata(path).map_err(|error| fails(error.to_string()))?.permissions().mode();
    // Rules are no secret.
    let secret = setting.name != HBA_FILE.name && setting.name != IDENT_FILE.name;
    if secret && mode & SECRET_MODE != 0 {
        let why = fails("others than its owner can change it or read it; run chmod 600 on it".to_owned());
        if setting.name != AUTH_FILE.name {
            return Err(why);
        }
        // memcached takes such a file, and containers make the files of their secrets readable for everybody.
        warn!("{why}");
    }
    parse(&text).map(Some).map_err(|error| fails(error.to_string()))
}

/// The first roles: a superuser, called like the user who runs the daemon.
fn make(path: &Path) -> Result<(), String> {
    let fails = |why: String| format!("roles_file: {}: {why}", path.display());
    let uid = rustix::process::geteuid().as_raw().to_string();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find(|line| line.split(':').nth(2) == Some(&uid));
    let name = name.and_then(|line| line.split(':').next()).unwrap_or("sqlcached");
    replace(path, &Roles::with_superuser(name).to_file(), SECRET)
        .map_err(|error| fails(error.to_string()))?;
    info!("{} was made, with the superuser {name}", path.display());
    Ok(())
}
