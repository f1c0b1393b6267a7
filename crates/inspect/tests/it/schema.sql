CREATE ROLE reader LOGIN; CREATE SCHEMA shop; SET search_path = shop; GRANT USAGE ON SCHEMA shop TO reader; ALTER DEFAULT PRIVILEGES IN SCHEMA shop GRANT SELECT ON TABLES TO reader

CREATE TYPE shop.state AS ENUM ('open', 'paid'); CREATE DOMAIN shop.price AS numeric CHECK (VALUE >= 0)

CREATE TABLE shop.seller (id int PRIMARY KEY, name text, city varchar(20), active boolean)

CREATE TABLE shop.item (id bigint PRIMARY KEY, seller_id int, sku varchar(20), title text, code char(5), tag uuid, cost shop.price, state shop.state, born date, made timestamptz, at timestamp, attributes jsonb, parts int[], sold boolean, weight numeric, digest bytea, doubled bigint GENERATED ALWAYS AS (seller_id * 2) STORED); ALTER TABLE shop.item REPLICA IDENTITY FULL

CREATE TABLE shop.review (id int PRIMARY KEY, item_id bigint, stars int, body text)

CREATE TABLE shop.stock (place text, item_id bigint, amount int, PRIMARY KEY (place, item_id))

CREATE TABLE shop.sale (id int, day date, item_id bigint, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); CREATE TABLE shop.sale_old PARTITION OF shop.sale FOR VALUES FROM (MINVALUE) TO ('2020-01-01'); CREATE TABLE shop.sale_new PARTITION OF shop.sale DEFAULT

CREATE TABLE shop.parent (id int PRIMARY KEY, x int); CREATE TABLE shop.child (y int, PRIMARY KEY (id)) INHERITS (shop.parent)

CREATE TABLE shop.keyless (id int, x int); CREATE TABLE shop.loose (word text COLLATE "C" PRIMARY KEY, n int); CREATE COLLATION shop.blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false); CREATE TABLE shop.folded (word text COLLATE shop.blind PRIMARY KEY)

CREATE VIEW shop.cheap AS SELECT id, seller_id, title FROM shop.item WHERE cost < 10

CREATE VIEW shop.per_seller AS SELECT seller_id, count(*) AS items FROM shop.item GROUP BY seller_id

CREATE VIEW shop.cheap_sellers AS SELECT s.*, c.title FROM shop.seller s JOIN shop.cheap c ON c.seller_id = s.id

CREATE VIEW shop.everything AS SELECT id::int, title FROM shop.item UNION ALL SELECT id, name FROM shop.seller

CREATE VIEW shop.clock AS SELECT id, now() AS at FROM shop.item

CREATE VIEW shop.limited AS SELECT id, title FROM shop.item ORDER BY id LIMIT 5

CREATE FUNCTION shop.peek(int) RETURNS text LANGUAGE sql STABLE AS 'SELECT name FROM shop.seller WHERE id = $1'; CREATE FUNCTION shop.twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 2'; CREATE FUNCTION shop.dice() RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 4'; CREATE AGGREGATE shop.total (int) (sfunc = int4pl, stype = int, initcond = '0'); CREATE FUNCTION shop.add(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 + $2; END'; CREATE AGGREGATE shop.odd_total (int) (sfunc = shop.add, stype = int, initcond = '0'); CREATE OPERATOR shop.=== (leftarg = int, rightarg = int, function = shop.add)

CREATE UNLOGGED TABLE shop.quick (id int PRIMARY KEY)

CREATE MATERIALIZED VIEW shop.frozen AS SELECT id FROM shop.item

CREATE SEQUENCE shop.counter; GRANT ALL ON SEQUENCE shop.counter TO reader

CREATE TABLE shop.secret (id int PRIMARY KEY, owner text); ALTER TABLE shop.secret ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON shop.secret USING (owner = current_user); CREATE VIEW shop.secrets AS SELECT * FROM shop.secret

CREATE TABLE shop.member (tenant int, person text, PRIMARY KEY (tenant, person)); CREATE TABLE shop.tenants_item (id int PRIMARY KEY, tenant int); ALTER TABLE shop.tenants_item ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON shop.tenants_item FOR SELECT USING (tenant = current_setting('app.tenant')::int); CREATE POLICY invited ON shop.tenants_item TO reader USING (EXISTS (SELECT FROM shop.member m WHERE m.tenant = tenants_item.tenant AND m.person = current_user)); CREATE POLICY writes ON shop.tenants_item FOR DELETE USING (now() > '2020-01-01'); CREATE VIEW shop.tenants_items AS SELECT * FROM shop.tenants_item

CREATE TABLE shop.timed (id int PRIMARY KEY, until timestamptz); ALTER TABLE shop.timed ENABLE ROW LEVEL SECURITY; CREATE POLICY valid ON shop.timed AS RESTRICTIVE USING (until > now()); CREATE TABLE shop.silent (id int PRIMARY KEY); CREATE TABLE shop.hidden (id int PRIMARY KEY); ALTER TABLE shop.hidden ENABLE ROW LEVEL SECURITY; CREATE POLICY known ON shop.hidden USING (id IN (SELECT id FROM shop.silent))

CREATE PUBLICATION told FOR TABLE shop.member, shop.tenants_item, shop.timed, shop.hidden, shop.seller, shop.item, shop.review, shop.stock, shop.sale, shop.parent, shop.keyless, shop.loose, shop.folded, shop.secret

CREATE TABLE shop.untold (id int PRIMARY KEY); CREATE TABLE shop.cut (id int PRIMARY KEY, x int); ALTER PUBLICATION told ADD TABLE shop.cut WHERE (id > 5); CREATE TABLE shop.narrow (id int PRIMARY KEY, x int); ALTER PUBLICATION told ADD TABLE shop.narrow (id)
