# SQL from Perl without a module: a statement, its rows.
use strict;
use warnings;
use IO::Socket::INET;

my $server = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or die $@;

sub sql {
    my ($statement) = @_;
    print $server "sql ", length $statement, "\r\n$statement\r\n";
    my @rows;
    while (my $line = <$server>) {
        $line =~ s/\r\n$//;
        die "$line\n" if $line =~ /^ERROR /;
        return @rows if $line =~ /^(END|OK \d+)$/;
        push @rows, $line;
    }
}

sql("CREATE TABLE pl (id INT PRIMARY KEY, name TEXT)");
sql("INSERT INTO pl VALUES (1, 'one'), (2, 'two')");
print "$_\n" for sql("SELECT id, name FROM pl ORDER BY id");
