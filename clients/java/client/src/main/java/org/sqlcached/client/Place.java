package org.sqlcached.client;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;

/**
 * Where a daemon listens.
 *
 * @param host a name or an address; null for a Unix socket
 * @param port of TCP
 * @param path of the Unix socket, or null
 */
record Place(String host, int port, String path) {
    /** TLS begins with the first byte, as on the memcached port. */
    static final byte[] AT_ONCE = {};

    /** @param location {@code host:port}, or the path of a Unix socket */
    static Place of(String location) {
        if (location.startsWith("/")) {
            return new Place(null, 0, location);
        }
        int colon = location.lastIndexOf(':');
        if (colon < 1) {
            throw new IllegalArgumentException("'" + location + "' is no host:port");
        }
        String host = location.substring(0, colon).replaceAll("^\\[|\\]$", "");
        return new Place(host, Integer.parseInt(location.substring(colon + 1)), null);
    }

    /** Another port of the same host. */
    Place at(int other) {
        return new Place(host, other, null);
    }

    /**
     * Opens a connection, with TLS if the options say so.
     *
     * @param question asks for TLS where it does not begin at once
     */
    Transport reach(Options options, byte[] question) throws IOException {
        long connect = options.connectTimeout().toMillis();
        if (path != null) {
            return ChannelTransport.open(UnixDomainSocketAddress.of(path), connect);
        }
        InetSocketAddress address = new InetSocketAddress(host, port);
        if (address.isUnresolved()) {
            throw new IOException("the host is not known");
        }
        return options.tls() == null
                ? ChannelTransport.open(address, connect)
                : TlsTransport.open(options, host, address, question);
    }

    @Override
    public String toString() {
        return path == null ? host + ":" + port : path;
    }
}
