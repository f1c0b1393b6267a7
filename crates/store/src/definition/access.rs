//! Who may do what with a table, view or sequence: its owner, and what was granted to whom by whom.
//!
//! It lies with the definition and dies with it. Roles are known by their names; what a role means is not known here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A set of privileges, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Privileges(u16);

/// One privilege: itself, PostgreSQL's letter for it, its name.
pub type PrivilegeName = (Privileges, char, &'static str);

/// All privileges, in the order in which PostgreSQL lists their letters. `REFERENCES` and `TRIGGER` mean nothing here;
/// `GRANT ALL` brings them, and tools show them.
pub const PRIVILEGES: &[PrivilegeName] = &[
    (Privileges::INSERT, 'a', "INSERT"),
    (Privileges::SELECT, 'r', "SELECT"),
    (Privileges::UPDATE, 'w', "UPDATE"),
    (Privileges::DELETE, 'd', "DELETE"),
    (Privileges::TRUNCATE, 'D', "TRUNCATE"),
    (Privileges::REFERENCES, 'x', "REFERENCES"),
    (Privileges::TRIGGER, 't', "TRIGGER"),
    (Privileges::EXECUTE, 'X', "EXECUTE"),
    (Privileges::USAGE, 'U', "USAGE"),
];

impl Privileges {
    /// None.
    pub const NONE: Self = Self(0);
    /// Reading rows.
    pub const SELECT: Self = Self(1);
    /// Making rows.
    pub const INSERT: Self = Self(2);
    /// Changing rows.
    pub const UPDATE: Self = Self(4);
    /// Removing rows.
    pub const DELETE: Self = Self(8);
    /// Removing all rows at once.
    pub const TRUNCATE: Self = Self(16);
    /// Foreign keys that lead to it.
    pub const REFERENCES: Self = Self(32);
    /// Triggers, of which there are none.
    pub const TRIGGER: Self = Self(64);
    /// Taking numbers of a sequence, and asking which was taken.
    pub const USAGE: Self = Self(128);
    /// Calling a function or procedure.
    pub const EXECUTE: Self = Self(256);
    /// All of a table's.
    pub const ALL: Self = Self(127);
    /// All of a sequence's.
    pub const OF_SEQUENCE: Self = Self(1 | 4 | 128);
    /// All that there are.
    pub const EVERY: Self = Self(511);
    /// All that a column can have.
    pub const OF_COLUMN: Self = Self(1 | 2 | 4 | 32);

    /// One bit each.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The privilege of this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        PRIVILEGES.iter().find(|(_, _, own)| own.eq_ignore_ascii_case(name)).map(|(one, ..)| *one)
    }

    /// Those of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are in both.
    #[must_use]
    pub const fn among(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of the other are among them.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether one of the other is among them.
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is none.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = &'static PrivilegeName> {
        PRIVILEGES.iter().filter(move |(one, ..)| self.has(*one))
    }
}

impl fmt::Debug for Privileges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.each().map(|(_, _, name)| name)).finish()
    }
}

/// What one role was granted by another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Who has it; `None`: everybody (`PUBLIC`).
    pub to: Option<String>,
    /// Who gave it; `None`: the superuser who owns what nobody owns.
    pub by: Option<String>,
    /// What.
    pub privileges: Privileges,
    /// Which of them it may grant to others.
    #[serde(default, skip_serializing_if = "is_none")]
    pub grantable: Privileges,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a field by reference")]
fn is_none(privileges: &Privileges) -> bool {
    privileges.is_none()
}

/// The owner of a table, view or sequence, and what was granted of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Who owns it; `None`: nobody but superusers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// What was granted; `None`: nothing ever was, and the owner has everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Vec<Grant>>,
}

impl Access {
    /// Whether it says nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What was granted, the owner's own where nothing ever was: `all` that there are of such an object.
    pub fn listed(&self, all: Privileges) -> Vec<Grant> {
        let own = || self.owner.as_deref().map(|owner| Grant::of_owner(owner, all)).into_iter().collect();
        self.grants.clone().unwrap_or_else(own)
    }

    /// Gives it to another owner. What the old one had and gave is the new one's.
    pub fn hand_over(&mut self, owner: &str, all: Privileges) {
        let old = self.owner.replace(owner.to_owned());
        let Some(before) = self.grants.take() else { return };
        let renamed = |role: Option<String>| if role == old { Some(owner.to_owned()) } else { role };
        let mut own: Vec<Grant> = old.is_none().then(|| Grant::of_owner(owner, all)).into_iter().collect();
        for one in before {
            // Nobody's name is that of everybody.
            let to = if one.to.is_some() { renamed(one.to) } else { None };
            grant(&mut own, &Grant { to, by: renamed(one.by), ..one });
        }
        self.grants = Some(own);
    }

    /// What those roles hold together, and what they may grant.
    pub fn held(&self, is_one: &dyn Fn(&str) -> bool) -> (Privileges, Privileges) {
        let owns = self.owner.as_deref().is_some_and(is_one);
        let Some(grants) = &self.grants else {
            return if owns { (Privileges::EVERY, Privileges::EVERY) } else { Default::default() };
        };
        let (held, grantable) = held(grants, is_one);
        // An owner can always grant itself again what it has taken from itself.
        (held, if owns { Privileges::EVERY } else { grantable })
    }
}

impl Grant {
    /// What an owner has of its own. That it may grant it goes without saying.
    pub fn of_owner(owner: &str, all: Privileges) -> Self {
        let owner = Some(owner.to_owned());
        Self { to: owner.clone(), by: owner, privileges: all, grantable: Privileges::NONE }
    }

    /// Whether it is to or by this role.
    pub fn names(&self, role: &str) -> bool {
        [&self.to, &self.by].iter().any(|name| name.as_deref() == Some(role))
    }

    fn is_between(&self, to: Option<&str>, by: Option<&str>) -> bool {
        self.to.as_deref() == to && self.by.as_deref() == by
    }
}

/// What roles hold together by these grants, and what they may grant.
pub fn held(grants: &[Grant], is_one: &dyn Fn(&str) -> bool) -> (Privileges, Privileges) {
    let own = grants.iter().filter(|grant| grant.to.as_deref().is_none_or(is_one));
    own.fold(Default::default(), |(held, grantable), grant| {
        (held.and(grant.privileges), grantable.and(grant.grantable))
    })
}

/// Adds a grant to others.
pub fn grant(grants: &mut Vec<Grant>, new: &Grant) {
    match grants.iter_mut().find(|grant| grant.is_between(new.to.as_deref(), new.by.as_deref())) {
        Some(known) => {
            known.privileges = known.privileges.and(new.privileges);
            known.grantable = known.grantable.and(new.grantable);
        }
        None => grants.push(new.clone()),
    }
}

/// Others have what is to be taken away from who gave it to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependent;

/// Takes away what `old` has; with `option_only` only the right to grant it. What the grantee gave to others goes with
/// it if `cascade`.
pub fn revoke(
    grants: &mut Vec<Grant>,
    old: &Grant,
    option_only: bool,
    cascade: bool,
) -> Result<(), Dependent> {
    let found = grants.iter_mut().find(|grant| grant.is_between(old.to.as_deref(), old.by.as_deref()));
    let Some(known) = found else { return Ok(()) };
    let lost = known.grantable.among(old.privileges);
    known.grantable = known.grantable.without(old.privileges);
    if !option_only {
        known.privileges = known.privileges.without(old.privileges);
    }
    grants.retain(|grant| !grant.privileges.is_none());
    let still = |one: &str| old.to.as_deref() == Some(one);
    let lost = lost.without(held(grants, &still).1);
    let Some(giver) = old.to.clone().filter(|_| !lost.is_none()) else { return Ok(()) };
    let given = |grant: &&Grant| {
        grant.by.as_deref() == Some(&*giver)
            && grant.to != grant.by
            && !grant.privileges.among(lost).is_none()
    };
    let dependent: Vec<Grant> = grants.iter().filter(given).cloned().collect();
    if !dependent.is_empty() && !cascade {
        return Err(Dependent);
    }
    dependent
        .into_iter()
        .try_for_each(|grant| revoke(grants, &Grant { privileges: lost, ..grant }, false, true))
}

/// Puts each grant back that a change made from `before` to `after`, unless somebody has changed it since.
pub fn take_back(now: &mut Vec<Grant>, before: &[Grant], after: &[Grant]) {
    let of = |grants: &[Grant], like: &Grant| {
        grants.iter().find(|grant| grant.is_between(like.to.as_deref(), like.by.as_deref())).cloned()
    };
    for changed in before.iter().chain(after) {
        let (was, became) = (of(before, changed), of(after, changed));
        if was == became || of(now, changed) != became {
            continue;
        }
        now.retain(|grant| !grant.is_between(changed.to.as_deref(), changed.by.as_deref()));
        now.extend(was);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(by: &str, to: &str, privileges: Privileges, grantable: Privileges) -> Grant {
        Grant { to: Some(to.into()), by: Some(by.into()), privileges, grantable }
    }

    #[test]
    fn an_owner_has_everything_until_something_is_granted() {
        let mut access = Access { owner: Some("o".into()), grants: None };
        assert_eq!(access.held(&|role| role == "o"), (Privileges::EVERY, Privileges::EVERY));
        assert_eq!(access.held(&|role| role == "a"), Default::default());
        access.grants = Some(vec![one("o", "a", Privileges::SELECT, Privileges::NONE)]);
        assert_eq!(access.held(&|role| role == "o"), (Privileges::NONE, Privileges::EVERY));
        assert_eq!(access.held(&|role| role == "a").0, Privileges::SELECT);
    }

    #[test]
    fn a_new_owner_has_what_the_old_one_had() {
        let everybody =
            Grant { to: None, by: None, privileges: Privileges::SELECT, grantable: Privileges::NONE };
        let mut access = Access { owner: None, grants: Some(vec![everybody.clone()]) };
        assert_eq!(access.held(&|role| role == "n").0, Privileges::SELECT);
        access.hand_over("n", Privileges::ALL);
        assert_eq!(access.held(&|role| role == "n").0, Privileges::ALL);
        assert_eq!(access.held(&|role| role == "other").0, Privileges::SELECT);
        access.hand_over("m", Privileges::ALL);
        assert_eq!(access.held(&|role| role == "n").0, Privileges::SELECT);
        assert_eq!(access.held(&|role| role == "m").0, Privileges::ALL);
        assert!(Access::default().listed(Privileges::ALL).is_empty());
    }

    #[test]
    fn what_was_handed_on_goes_along() {
        let select = Privileges::SELECT;
        let chain = vec![
            one("o", "a", select, select),
            one("a", "b", select, select),
            one("b", "c", select, Privileges::NONE),
        ];
        let old = one("o", "a", select, Privileges::NONE);
        assert_eq!(revoke(&mut chain.clone(), &old, false, false), Err(Dependent));
        assert_eq!(revoke(&mut chain.clone(), &old, true, false), Err(Dependent));
        let mut grants = chain.clone();
        revoke(&mut grants, &old, false, true).unwrap();
        assert!(grants.is_empty(), "{grants:?}");
        // Another gave it too: what was handed on stays.
        let mut grants = chain;
        grants.push(one("p", "a", select, select));
        revoke(&mut grants, &old, false, false).unwrap();
        assert_eq!(grants.len(), 3);
    }

    #[test]
    fn a_change_is_taken_back_and_those_of_others_stay() {
        let before = vec![one("o", "a", Privileges::SELECT, Privileges::NONE)];
        let mut after = before.clone();
        grant(&mut after, &one("o", "a", Privileges::UPDATE, Privileges::NONE));
        grant(&mut after, &one("o", "b", Privileges::SELECT, Privileges::NONE));
        let mut now = after.clone();
        take_back(&mut now, &before, &after);
        assert_eq!(now, before);
        // Somebody took everything from `a` meanwhile.
        let mut now = after[1..].to_vec();
        take_back(&mut now, &before, &after);
        assert!(now.is_empty(), "{now:?}");
    }
}
