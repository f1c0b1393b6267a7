package org.sqlcached.tests;

import static org.sqlcached.tests.FailureTest.await;

import org.junit.After;
import org.junit.Before;
import org.sqlcached.client.Client;
import org.sqlcached.client.Definition;
import org.sqlcached.client.Loading;
import org.sqlcached.client.Near;
import org.sqlcached.client.NearCache;
import org.sqlcached.client.Table;
import org.sqlcached.client.Values;

/** Tests of two clients, one of which keeps copies, at a daemon that all of a class share. */
abstract class CopyTest extends DaemonTest {
    Client client;
    Client other;

    @Before
    public void open() {
        client = daemon.client();
        other = daemon.client();
    }

    @After
    public void close() {
        client.close();
        other.close();
    }

    static Loading rows(Client client, String table) {
        return new Loading(new Table(client, new Definition(table)), new Values("org.sqlcached.tests.**"));
    }

    /** Copies that are kept from now on. */
    static NearCache heard(Loading rows, Near options) {
        NearCache near = rows.near(options);
        await(near::isHeard);
        return near;
    }
}
