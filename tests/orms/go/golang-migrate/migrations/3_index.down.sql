DROP INDEX member_town;
