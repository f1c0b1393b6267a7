//! Rows that one cache gives another that has lost its own: a walk through a table in steps, and how a row is put in
//! that the other cache read some time ago.
//!
//! What is given is what the bus has. A row whose write is still under way is left out, and so is one that is stale, or
//! that somebody is refreshing: who has no row of a key looks where the value comes from, and is never wrong.

use arena::{Arena, Location, MAX_KEY_BYTES, SHARDS, ScanShape};

use crate::clock::Tick;
use crate::error::WriteError;
use crate::mutation::Mutation;
use crate::row::RowBuf;
use crate::row::meta::ItemMeta;
use crate::row::new::NewRow;
use crate::row::renewal::Freshness;
use crate::row::request::{Expect, Outcome};
use crate::row::version::Version;
use crate::rows::Rows;
use crate::rows::replica::Replica;
use crate::rows::write::{Glance, Target};
use crate::table::Table;

/// Where a walk stands, for who goes on with it later, and in words that may travel. A key stays in its group of
/// buckets however often the index splits meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivePlace {
    /// The groups of the walk.
    pub groups: u64,
    /// The one that is next.
    pub group: u64,
    /// The rows of that one up to this hash were met.
    pub behind: Option<u64>,
}

/// What one step gives at most.
#[derive(Clone, Copy, Debug)]
pub struct GiveLimits {
    /// Groups of buckets that it looks at.
    pub groups: u64,
    /// Rows.
    pub rows: usize,
    /// Bytes of these. One row may have more.
    pub bytes: usize,
    /// Bytes of a row. A larger one is left out.
    pub row_bytes: usize,
}

/// A place that is none of this table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchPlace;

/// A step of a walk.
struct Step<'g> {
    most: &'g GiveLimits,
    give: &'g mut dyn FnMut(&[u8], Replica),
    rows: usize,
    bytes: usize,
    /// The rows of a group, each with the hash of its key.
    found: Vec<(u64, Location)>,
    row: RowBuf,
}

impl Step<'_> {
    /// Whether so many bytes more are too many.
    fn is_full_for(&self, bytes: usize) -> bool {
        self.rows >= self.most.rows || self.rows > 0 && self.bytes + bytes > self.most.bytes
    }

    /// False: it is for the next step.
    fn take(&mut self, replica: Replica) -> bool {
        let bytes = self.row.key().len() + replica.bytes();
        if bytes > self.most.row_bytes {
            return true;
        }
        if self.is_full_for(bytes) {
            return false;
        }
        self.rows += 1;
        self.bytes += bytes;
        (self.give)(self.row.key(), replica);
        true
    }
}

impl Rows {
    /// Gives some rows of a table from a place on; none is its beginning. Returns where to go on; none: that was all.
    /// A row that is there from the beginning to the end is given once; one that comes or goes may be given or not.
    pub fn give_rows(
        &self,
        table: &Table,
        from: Option<GivePlace>,
        most: &GiveLimits,
        give: &mut dyn FnMut(&[u8], Replica),
    ) -> Result<Option<GivePlace>, NoSuchPlace> {
        let mut place = self.give_place(table, from)?;
        let (found, row) = (Vec::new(), RowBuf::new());
        let mut step = Step { most, give, rows: 0, bytes: 0, found, row };
        let end = place.groups.min(place.group.saturating_add(most.groups));
        while place.group < end && !step.is_full_for(0) {
            if !self.give_group(table, &mut place, &mut step) {
                return Ok(Some(place));
            }
            (place.group, place.behind) = (place.group + 1, None);
        }
        Ok((place.group < place.groups).then_some(place))
    }

    /// The place that was said, if there may be such a one: whoever said it may have lied.
    fn give_place(&self, table: &Table, said: Option<GivePlace>) -> Result<GivePlace, NoSuchPlace> {
        let groups = self.arena.of(table.id()).scan_shape().groups;
        let Some(place) = said else { return Ok(GivePlace { groups, group: 0, behind: None }) };
        let is_shape = place.groups.is_power_of_two() && (SHARDS as u64..=groups).contains(&place.groups);
        if is_shape && place.group < place.groups { Ok(place) } else { Err(NoSuchPlace) }
    }

    /// The rows of one group, in the order of their hashes. False: some are left.
    fn give_group(&self, table: &Table, place: &mut GivePlace, step: &mut Step<'_>) -> bool {
        let now = self.now();
        // The lock that keeps rows in their places is the one under which writes are told.
        let shard = self.shard_at(Arena::shard_of_group(place.group)).lock();
        let (arena, id) = (self.arena.of(table.id()), table.id());
        let mut locations = Vec::new();
        arena.scan_group(&shard.token, ScanShape { groups: place.groups }, place.group, id, &mut locations);
        step.found.clear();
        let mut key = Vec::new();
        for location in locations {
            let Some(read) = self.arena.of(location).row(location) else { continue };
            key.clear();
            read.copy_key(&mut key);
            let hash = arena.hash(id, &key).0;
            if place.behind.is_none_or(|behind| hash > behind) {
                step.found.push((hash, location));
            }
        }
        step.found.sort_unstable_by_key(|(hash, _)| *hash);
        let writes = self.is_under_way(table, None);
        for at in 0..step.found.len() {
            let (hash, location) = step.found[at];
            if self.load_stable(location, &mut step.row)
                && self.is_to_give(table, &step.row, now)
                && !(writes && self.is_under_way(table, Some(step.row.key())))
                && !step.take(Replica::given(self, table, &step.row))
            {
                return false;
            }
            place.behind = Some(hash);
        }
        true
    }

    fn is_to_give(&self, table: &Table, row: &RowBuf, now: Tick) -> bool {
        let (head, meta) = (row.head(), ItemMeta::of(row.head(), 0));
        head.table == table.id()
            && head.stamp != 0
            && self.is_live(table, head, now)
            && !meta.is_leased(now)
            && self.freshness(table, &meta, now) != Freshness::Stale
    }

    /// Puts in a row that another cache has given, if there is none under its key, or one that is stale and was written
    /// up to a stamp. False: there is one, or a write of this cache is under way, or its time has come.
    pub fn put_given(
        &self,
        table: &Table,
        key: &[u8],
        replica: &Replica,
        (stale_to, now): (u64, Tick),
    ) -> Result<bool, WriteError> {
        if key.len() > MAX_KEY_BYTES || !table.keys().is_key(key) {
            return Ok(false);
        }
        self.by_newest(table, |table| {
            let row = self.row_of(table, replica)?;
            self.put_given_row(table, key, &row, (stale_to, now))
        })
    }

    fn put_given_row(
        &self,
        table: &Table,
        key: &[u8],
        row: &NewRow,
        (stale_to, now): (u64, Tick),
    ) -> Result<bool, WriteError> {
        if table.has_ended(row.expiry, now) {
            return Ok(false);
        }
        let expect = match self.look(table, key, now, false) {
            None => Expect::Absent,
            // One that is not believed any more. Who holds a lease of it is about to bring a better one.
            Some((seen, _)) if seen.stale && seen.stamp <= stale_to && !seen.is_leased(now) => {
                Expect::Unclaimed { stamp: seen.stamp, lease: seen.lease }
            }
            Some(_) => return Ok(false),
        };
        let hash = self.arena.of(table.id()).hash(table.id(), key);
        let Ok(Glance { queue, seen }) = self.glance(table, hash, key, expect, now) else { return Ok(false) };
        self.checkpoint(now);
        let placed = self.place(table, queue, &row.parts(key, &[&row.payload]), false, now)?;
        let target = Target { hash, key, seen, copy: None };
        let done = self.publish_given(table, &target, placed.version, expect, now);
        drop(placed);
        self.after_write(table, now);
        done
    }

    fn publish_given(
        &self,
        table: &Table,
        target: &Target<'_>,
        new: Version,
        expect: Expect,
        now: Tick,
    ) -> Result<bool, WriteError> {
        let mut shard = self.shard(target.hash).lock();
        let _mutation = Mutation;
        // A commit is about to write it.
        let is_marked = shard.mark_of(target.hash, table.id(), target.key).is_some();
        if is_marked || self.is_under_way(table, Some(target.key)) {
            return Ok(false);
        }
        let outcome = self.publish_locked(&mut shard, table, target, Some(new), expect, now)?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }
}
