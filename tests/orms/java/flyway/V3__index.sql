CREATE INDEX person_town ON person (town);
