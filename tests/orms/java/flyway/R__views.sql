CREATE OR REPLACE VIEW names AS SELECT name, count(*) AS people FROM person GROUP BY name;
