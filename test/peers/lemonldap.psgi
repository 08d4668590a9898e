# The portal of LemonLDAP::NG; the accounts of its demonstration are those of a test, read anew at each request.
use strict;
use warnings;
use JSON;

# No form here has a captcha. Its module is loaded all the same: the libraries that draw one are left out.
BEGIN { $INC{'GD/SecurityImage.pm'} = __FILE__ }
use Lemonldap::NG::Portal::Main;

my $portal = Lemonldap::NG::Portal::Main->run( {} );

sub {
    my ($env) = @_;
    open my $file, '<', $ENV{LEMONLDAP_ACCOUNTS} or die "accounts: $!";
    # The portal takes text as bytes of UTF-8, so nothing is decoded.
    my $accounts = JSON->new->decode( do { local $/; <$file> } );
    %Lemonldap::NG::Portal::UserDB::Demo::demoAccounts = %{ $accounts->{persons} };
    %Lemonldap::NG::Portal::UserDB::Demo::demoGroups   = %{ $accounts->{groups} };
    my $answer = $portal->($env);
    # The server counts characters, and by TLS it sends bytes.
    utf8::downgrade($_) for @{ $answer->[2] };
    return $answer;
};
