import { expect } from 'chai';
import { authorizationResponse, destinationOf } from '../../../domain/oauth/authorization-response.ts';

const issuer = 'https://issuer.example/acme';
const sent = 'code=c-1&state=s+1&iss=https%3A%2F%2Fissuer.example%2Facme';

describe('an authorization response', () => {
  const addresses: readonly [string, string][] = [
    ['https://wallet.example/cb', '?'],
    ['https://wallet.example', '?'],
    ['https://wallet.example/cb?', ''],
    ['https://wallet.example/cb?a=b%20c&flag&x=~y', '&'],
    ['https://wallet.example/cb?a=b&', ''],
    ['https://Wallet.example:443/a/../cb?next=%2F', '&'],
    ['http://127.0.0.1:4711/cb?a', '&'],
    ['openid4vp://', '?'],
    ['com.example.wallet:/cb?x=~', '&'],
  ];
  for (const [address, separator] of addresses) {
    it(`keeps ${address} as the wallet wrote it (RFC 6749 section 3.1.2)`, () => {
      const location = authorizationResponse(address, { issuer, state: 's 1', code: 'c-1' });
      expect(location).to.equal(`${address}${separator}${sent}`);
    });
  }

  it('cannot be given other parameters by what the wallet chose as state', () => {
    const location = authorizationResponse('https://wallet.example/cb', {
      issuer,
      state: 'x&code=stolen#',
      error: 'access_denied',
    });
    const { searchParams, hash } = new URL(location);
    expect([...searchParams.keys(), hash]).to.deep.equal(['error', 'state', 'iss', '']);
  });
});

describe('the destination that users are told', () => {
  for (const [address, told] of [
    ['https://wallet.example/cb?x=y', 'wallet.example'],
    ['http://127.0.0.1:4711/cb', '127.0.0.1:4711'],
    ['com.example.wallet:/cb', 'com.example.wallet:'],
    ['haip-vci://evil.example', 'haip-vci:'],
  ] as const) {
    it(`of ${address} is ${told}`, () => expect(destinationOf(address)).to.equal(told));
  }
});
