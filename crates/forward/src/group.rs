//! What a client sends at once: a simple query, or requests up to the `Sync` or `Flush` behind them.

use postgres::frontend::{Bind, Parse, Parsed, Request, Target, parse};

use crate::frame::{Next, next};
use crate::limits::GROUP_REQUESTS_MAX;

/// A group of requests, as far as it may be answered here.
#[derive(Debug)]
pub(crate) enum Group<'b> {
    /// Statements as text.
    Simple(&'b str),
    /// A statement is prepared, and perhaps described.
    Prepare(Parse<'b>, Option<Described>),
    /// A statement of this name is described.
    Describe(&'b str, Described),
    /// A statement is run, once and whole.
    Run(Box<Run<'b>>),
    /// Anything else.
    Other,
}

/// How a group ends in which a statement is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Described {
    /// By `Sync`: the client waits for `ReadyForQuery`.
    Synced,
    /// By `Flush`.
    Flushed,
}

/// A statement that is run.
#[derive(Debug)]
pub(crate) struct Run<'b> {
    /// It is prepared in the same group.
    pub(crate) parse: Option<Parse<'b>>,
    pub(crate) bind: Bind<'b>,
    /// The columns of its answer are asked for.
    pub(crate) described: bool,
    /// Its portal is closed behind it.
    pub(crate) closed: bool,
}

/// Where the first group of the input ends; none: its end has not come, or it is none. `from`: how far that was looked
/// for already.
pub(crate) fn end_of_group(input: &[u8], from: &mut usize) -> Ended {
    loop {
        match next(&input[*from..]) {
            Next::Whole(frame) => {
                *from += frame.bytes.len();
                if !matches!(frame.kind, b'P' | b'B' | b'D' | b'C' | b'E') {
                    return Ended::At(std::mem::take(from));
                }
            }
            Next::Part { .. } | Next::Less => return Ended::Later,
            Next::Broken => return Ended::Broken,
        }
    }
}

/// What was found of a group's end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is here.
    At(usize),
    /// It has not come.
    Later,
    /// Where messages begin is not known any more.
    Broken,
}

/// Reads a whole group.
pub(crate) fn read(bytes: &[u8]) -> Group<'_> {
    let mut requests = [Request::Flush; GROUP_REQUESTS_MAX];
    let (mut count, mut at) = (0, 0);
    while at < bytes.len() {
        let Parsed::Complete { request, consumed } = parse(&bytes[at..]) else { return Group::Other };
        if count == GROUP_REQUESTS_MAX {
            return Group::Other;
        }
        requests[count] = request;
        (count, at) = (count + 1, at + consumed);
    }
    shape(&requests[..count])
}

fn shape<'b>(requests: &[Request<'b>]) -> Group<'b> {
    let is_end = |request: &Request<'_>| match request {
        Request::Sync => Some(Described::Synced),
        Request::Flush => Some(Described::Flushed),
        _ => None,
    };
    match requests {
        [Request::Query(text)] => Group::Simple(text),
        [Request::Parse(parse), Request::Sync] => Group::Prepare(*parse, None),
        [Request::Parse(parse), Request::Describe(Target::Statement(name)), end]
            if *name == parse.name && is_end(end).is_some() =>
        {
            Group::Prepare(*parse, is_end(end))
        }
        [Request::Describe(Target::Statement(name)), end] => {
            is_end(end).map_or(Group::Other, |end| Group::Describe(name, end))
        }
        _ => run(requests).map_or(Group::Other, |run| Group::Run(Box::new(run))),
    }
}

fn run<'b>(requests: &[Request<'b>]) -> Option<Run<'b>> {
    let mut rest = requests.iter();
    let mut request = rest.next()?;
    let mut parse = None;
    if let Request::Parse(parsed) = request {
        parse = Some(*parsed);
        request = rest.next()?;
    }
    let Request::Bind(bind) = request else { return None };
    let same = parse.is_none_or(|parse| parse.name == bind.statement);
    if !same || !bind.portal.is_empty() {
        return None;
    }
    request = rest.next()?;
    let described = matches!(request, Request::Describe(Target::Portal("")));
    if described {
        request = rest.next()?;
    }
    let Request::Execute { portal: "", max_rows: 0 } = request else { return None };
    request = rest.next()?;
    let closed = matches!(request, Request::Close(Target::Portal("")));
    if closed {
        request = rest.next()?;
    }
    let whole = matches!(request, Request::Sync) && rest.next().is_none();
    whole.then_some(Run { parse, bind: *bind, described, closed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::put;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(kind, &[body], &mut out);
        out
    }

    fn of(messages: &[(u8, &[u8])]) -> Vec<u8> {
        messages.iter().flat_map(|(kind, body)| message(*kind, body)).collect()
    }

    const PARSE: (u8, &[u8]) = (b'P', b"s\0SELECT 1\0\0\0");
    const BIND: (u8, &[u8]) = (b'B', b"\0s\0\0\0\0\0\0\0");
    const EXECUTE: (u8, &[u8]) = (b'E', b"\0\0\0\0\0");
    const SYNC: (u8, &[u8]) = (b'S', b"");

    #[test]
    fn groups_are_read() {
        let shape = |messages: &[(u8, &[u8])]| match read(&of(messages)) {
            Group::Simple(text) => format!("simple {text}"),
            Group::Prepare(parse, described) => format!("prepare {} {described:?}", parse.name),
            Group::Describe(name, described) => format!("describe {name} {described:?}"),
            Group::Run(run) => format!("run {} {} {}", run.parse.is_some(), run.described, run.closed),
            Group::Other => "other".to_owned(),
        };
        assert_eq!(shape(&[(b'Q', b"SELECT 1\0")]), "simple SELECT 1");
        assert_eq!(shape(&[PARSE, SYNC]), "prepare s None");
        assert_eq!(shape(&[PARSE, (b'D', b"Ss\0"), (b'H', b"")]), "prepare s Some(Flushed)");
        assert_eq!(shape(&[(b'D', b"Ss\0"), SYNC]), "describe s Synced");
        assert_eq!(shape(&[PARSE, BIND, (b'D', b"P\0"), EXECUTE, SYNC]), "run true true false");
        assert_eq!(shape(&[BIND, EXECUTE, (b'C', b"P\0"), SYNC]), "run false false true");
        for other in [
            &[PARSE, (b'D', b"St\0"), SYNC][..],
            &[BIND, (b'E', b"\0\0\0\0\x05"), SYNC],
            &[BIND, EXECUTE, (b'H', b"")],
            &[BIND, EXECUTE, BIND, EXECUTE, SYNC],
            &[(b'B', b"p\0s\0\0\0\0\0\0\0"), EXECUTE, SYNC],
            &[(b'P', b"t\0SELECT 1\0\0\0"), BIND, EXECUTE, SYNC],
            &[(b'Q', b"\xff\0")],
            &[(b'X', b"")],
        ] {
            assert_eq!(shape(other), "other");
        }
    }

    #[test]
    fn ends_of_groups_are_found() {
        let bytes = of(&[PARSE, BIND, EXECUTE, SYNC, (b'Q', b"x\0")]);
        let mut from = 0;
        assert_eq!(end_of_group(&bytes[..20], &mut from), Ended::Later);
        let end = bytes.len() - 7;
        assert_eq!(end_of_group(&bytes, &mut from), Ended::At(end));
        assert_eq!((from, end_of_group(&bytes[end..], &mut from)), (0, Ended::At(7)));
        assert_eq!(end_of_group(b"P\0\0\0\0", &mut from), Ended::Broken);
    }
}
