package org.sqlcached.client;

/** Where the daemon listens for PostgreSQL's clients: as the options say, or as it says itself. */
final class SqlPlace {
    private SqlPlace() {
    }

    static Place of(Client client) {
        Options options = client.options();
        if (options.sqlLocation() != null) {
            return Place.of(options.sqlLocation());
        }
        Object port = client.statement(true, "SELECT setting FROM pg_settings WHERE name = 'sql_port'").rows().get(0).get("setting");
        int number = Integer.parseInt(port.toString());
        if (number < 1) {
            throw new RefusedException(options + ": the daemon has no SQL port that is known (sql_port = " + number + ")");
        }
        Place place = Place.of(options.location());
        // A Unix socket is one of this machine.
        return place.host() == null ? new Place("127.0.0.1", number, null) : place.at(number);
    }
}
