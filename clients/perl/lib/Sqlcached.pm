package Sqlcached;

use 5.020;
use strict;
use warnings;

our $VERSION = '0.1.0';

use XSLoader;

XSLoader::load('Sqlcached', $VERSION);

# An object holds a pointer: a new thread does not get a copy of it.
sub CLONE_SKIP { 1 }

sub new {
    my ($class, %options) = @_;
    my ($socket, $arena, $timeout) = delete @options{qw(socket arena timeout)};
    die 'unknown option: ' . join(', ', sort keys %options) . "\n" if %options;
    return $class->_open($socket, $arena, int(1000 * ($timeout // 0)));
}

sub get_many {
    my ($self, @keys) = @_;
    return $self->_get_many(\@keys);
}

sub set {
    my ($self, $key, $value, %options) = @_;
    return $self->_write(0, $key, $value, 0, \%options);
}

sub add {
    my ($self, $key, $value, %options) = @_;
    return $self->_write(1, $key, $value, 0, \%options);
}

sub cas {
    my ($self, $key, $value, $cas, %options) = @_;
    return $self->_write(2, $key, $value, $cas, \%options);
}

sub _write {
    my ($self, $how, $key, $value, $cas, $options) = @_;
    my ($flags, $expire) = delete @$options{qw(flags expire)};
    die 'unknown option: ' . join(', ', sort keys %$options) . "\n" if %$options;
    return !!$self->_store($how, $key, $value, $flags // 0, $expire // 0, $cas);
}

package Sqlcached::Table;

sub CLONE_SKIP { 1 }

sub get_many {
    my ($self, @keys) = @_;
    return $self->_get_many(\@keys);
}

package Sqlcached::Error;

use overload '""' => sub { $_[0]->message }, bool => sub { 1 }, fallback => 1;

sub status   { $_[0]{status} }
sub message  { $_[0]{message} }
sub sqlstate { $_[0]{sqlstate} }

1;

__END__

=encoding utf8

=head1 NAME

Sqlcached - reads sqlcached from shared memory

=head1 SYNOPSIS

    use Sqlcached;

    my $cache = Sqlcached->new(socket => '/run/sqlcached/sock');
    $cache->set('frag:17:head', 'hello', expire => 600);
    print $cache->get('frag:17:head');
    $cache->sql('DELETE FROM frag WHERE page = ?1', 17);

=head1 DESCRIPTION

Values of tables that are C<WITH (shared_memory = on)> are copied out of shared memory, without a system call. All
else goes over the daemon's Unix socket by itself.

Keys and values are bytes: encode characters before (L<Encode>). A string with characters above 255 is refused with
"Wide character". Statements and the text of rows are characters.

=head1 METHODS OF A CLIENT

=over

=item new(socket => PATH, arena => PATH, timeout => SECONDS)

Connects. Without C<socket> it looks where a daemon of this user has its socket by default; without C<arena> it asks the
daemon where the shared memory is.

=item get(KEY)

The value under one of memcached's keys, or C<undef>.

=item lookup(KEY)

A list. The first element is C<hit>, C<stale> (invalidated, and not refreshed yet), C<due> (it expires soon) or C<miss>.
Except for a miss, the value, its flags, its CAS, and the client that is asked to refresh it follow: C<you>, C<another>
client, or C<nobody>.

=item claim(KEY, SECONDS)

As C<lookup>. It also reserves a missing value for so many seconds: one client is asked to compute it. The others can
C<wait>.

=item get_many(KEY, ...)

A reference to a hash of the existing keys.

=item set(KEY, VALUE, expire => SECONDS, flags => NUMBER)

=item add(KEY, VALUE, ...)

=item cas(KEY, VALUE, CAS, ...)

Store a value: C<set> always, C<add> if the key is missing, C<cas> if the value has not changed since a C<lookup>. True
if it was stored.

=item increment(KEY, DELTA)

Adds to a number, or subtracts. Returns the new number, or C<undef> if the key is missing.

=item delete(KEY)

True if the key existed.

=item sql(STATEMENT, PARAMETER, ...)

Rows, as a reference to a list of references to hashes; or the number of changed rows. A reference to a string among the
parameters is a BLOB.

=item table(NAME)

A table, for reads by its own primary key.

=back

=head1 METHODS OF A TABLE

=over

=item get(KEY), get_many(KEY, ...)

As of a client. The parts of a composite key are joined with C<:>.

=item row(KEY)

All columns, as a reference to a hash, or C<undef>.

=item wait(KEY, SECONDS)

As C<get>. If another client is asked to compute the row, it waits for the row, at most so many seconds.

=back

=head1 ERRORS

A method that fails dies with an object of C<Sqlcached::Error>: C<message>, which the object is as a string; C<status>,
a number of F<sqlcached.h>; C<sqlstate> of a statement.

=head1 PROCESSES AND THREADS

A child after C<fork> may go on with its parent's objects. A new perl thread has none of them and makes its own.

=cut
