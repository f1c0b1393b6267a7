//! Between the binary protocol's frames and the session: what a request asks for, and what its outcome is called.

use engine::{Answer, Condition, MetaDone, MetaSet};
use memcache::binary::{self, Command, Id, Request, Status};

/// The version that a request names; 0 names none.
#[inline]
pub(crate) fn version(cas: u64) -> Option<u64> {
    (cas != 0).then_some(cas)
}

/// What a request that stores asks for; none of any other.
#[inline]
pub(crate) fn asked_to_put(request: &Request<'_>) -> Option<MetaSet<'static>> {
    let compare = version(request.cas);
    Some(match request.command {
        // A version to replace is the whole condition, as in memcached.
        Command::Store { flags, exptime, .. } if compare.is_some() => {
            MetaSet { client_flags: flags, exptime: exptime.into(), compare, ..MetaSet::default() }
        }
        Command::Store { condition, flags, exptime } => {
            let condition = match condition {
                binary::Condition::Set => Condition::Always,
                binary::Condition::Add => Condition::Absent,
                binary::Condition::Replace => Condition::Present,
            };
            MetaSet { condition, client_flags: flags, exptime: exptime.into(), ..MetaSet::default() }
        }
        Command::Join { append } => {
            let condition = if append { Condition::Append } else { Condition::Prepend };
            MetaSet { condition, compare, ..MetaSet::default() }
        }
        _ => return None,
    })
}

/// Appends the answer to a request that stores.
#[inline]
pub(crate) fn write_put(outcome: Result<MetaDone, Answer>, request: &Request<'_>, out: &mut Vec<u8>) {
    match outcome {
        Ok(MetaDone::Done(_)) if request.quiet => {}
        Ok(MetaDone::Done(made)) => {
            // A value that was over before it was stored has no version of its own, in an empty store none; 0 would be
            // taken for any.
            let cas = made.cas.max(1);
            request.id.answer(&binary::Answer { cas, ..binary::Answer::default() }, out);
        }
        outcome => {
            let not_stored = match request.command {
                Command::Store { condition: binary::Condition::Add, .. } => Status::Exists,
                Command::Store { .. } => Status::NotFound,
                _ => Status::NotStored,
            };
            write_undone(outcome, request.id, not_stored, out);
        }
    }
}

/// Appends why nothing was done; `not_stored` where a condition did not hold.
#[cold]
pub(crate) fn write_undone(outcome: Result<MetaDone, Answer>, id: Id, not_stored: Status, out: &mut Vec<u8>) {
    match outcome {
        Ok(MetaDone::Exists) => id.refuse(Status::Exists, out),
        Ok(MetaDone::NotFound) => id.refuse(Status::NotFound, out),
        Ok(_) => id.refuse(not_stored, out),
        Err(refusal) => refuse(id, &refusal, out),
    }
}

/// Appends that a request is done, unless it is quiet.
pub(crate) fn write_done(id: Id, quiet: bool, out: &mut Vec<u8>) {
    if !quiet {
        id.answer(&binary::Answer::default(), out);
    }
}

/// Appends a refusal. Where the protocol has a status of its own, memcached's words stand with it; else ours do.
#[cold]
pub(crate) fn refuse(id: Id, refusal: &Answer, out: &mut Vec<u8>) {
    match refusal {
        Answer::TooLarge => id.refuse(Status::TooLarge, out),
        Answer::OutOfMemory => id.refuse(Status::OutOfMemory, out),
        Answer::NotANumber => id.refuse(Status::NonNumeric, out),
        Answer::NotAllowed(_) => id.refuse(Status::NotAllowed, out),
        Answer::ClientError(message) => id.refuse_with(Status::InvalidArguments, message, out),
        Answer::ServerError(message) => id.refuse_with(Status::NotStored, message, out),
        _ => id.refuse(Status::NotStored, out),
    }
}
