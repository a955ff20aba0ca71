import { expect } from 'chai';
import { isRedirectAddress } from '../../../domain/shared/redirect-address.ts';

describe('An address that a browser may be sent to', () => {
  for (const text of [
    'https://wallet.example/callback?from=here&to=%2Fthere',
    'https://wallet.example:8443',
    'https://wallet.example:443/the-port-that-is-meant-anyway',
    'HTTPS://WALLET.example/',
    'http://localhost:3000/callback',
    'http://localhost:80/',
    'http://127.0.0.1/',
    'http://[::1]:9/',
    'com.example.wallet:/callback',
    'com.example-2.wallet+x://callback',
    'openid4vp://authorize',
    'haip:',
  ]) {
    it(`is ${text}`, () => expect(isRedirectAddress(text)).to.equal(true));
  }

  for (const [what, text] of [
    ['with a fragment', 'https://wallet.example/#here'],
    ['with a space', 'https://wallet.example/a b'],
    ['with a backslash', 'https://wallet.example\\@evil.example/'],
    ['with a character of another script', 'https://wället.example/'],
    ['that is relative', '/callback'],
    ['without a host', 'https://'],
    ['that is too long', `https://wallet.example/${'x'.repeat(2048)}`],
    ['with a user', 'https://shop@wallet.example/'],
    ['with a password alone', 'https://:secret@wallet.example/'],
    ['with a password in a private scheme', 'com.example.wallet://:secret@callback'],
    ['with a user in a private scheme', 'com.example.wallet://shop@callback'],
    ['of a server without TLS', 'http://wallet.example/'],
    ['of a host that begins like this device', 'http://localhost.evil.example/'],
    ['whose host only browsers see', 'https:evil.example'],
    ['whose host is behind three slashes', 'https:///evil.example'],
    ['that browsers take for this device', 'http:localhost'],
    ['whose host is a number', 'https://0x7f.1/'],
    ['of another port than that of http', 'http://localhost:0443/'],
    ['whose port has a zero too many', 'https://wallet.example:00443/'],
    ['of a scheme without a dot', 'wallets://callback'],
    ['of a scheme that opens files', 'file:///etc/passwd'],
    ['of a scheme that runs', 'javascript:alert(1)'],
    ['of a scheme that ends with a dot', 'com.:/callback'],
  ] as const) {
    it(`is none ${what}`, () => expect(isRedirectAddress(text), text).to.equal(false));
  }
});
