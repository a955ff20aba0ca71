import { expect } from 'chai';
import { RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import { ASSERTION_TYPE, keysFor, parseAssertion } from '../../../domain/oauth/client-assertion.ts';
import { type HolderKey, makeJwt, newKey, type Overrides } from '../../support/raw-wallet.ts';
import { ClientWorld, SERVER } from './kit.ts';

const CLIENT = 'https://bank.example/wallet';
const JWKS_URI = 'https://bank.example/jwks';
const fields = { attestation: [], attestationPop: [] };

let client: ClientWorld;
let key: HolderKey;

const seconds = () => client.world.seconds;

function assertion(bend: Overrides & { readonly key?: HolderKey } = {}): string {
  const header = { alg: 'ES256', typ: 'JWT', kid: 'one', ...bend.header };
  const iat = seconds();
  const payload = { iss: CLIENT, sub: CLIENT, aud: SERVER, iat, exp: iat + 300, jti: 'first', ...bend.payload };
  return makeJwt(bend.key ?? key, header, payload);
}

function outcome(text = assertion(), form: Record<string, string> = {}): Promise<string> {
  const base = { client_assertion_type: ASSERTION_TYPE, client_assertion: text };
  return client.outcome({ fields, form: { ...base, ...form } });
}

describe('wallet client that is registered with a key', () => {
  beforeEach(async () => {
    client = await ClientWorld.make();
    key = newKey();
    const jwks = { keys: [{ ...key.jwk, kid: 'one', use: 'sig', alg: 'ES256' }] };
    client.configure({ walletClients: [{ client_id: CLIENT, jwks, redirect_uris: ['https://bank.example/cb'] }] });
  });

  it('is authenticated by its assertion, even if attestations are required', async () => {
    const form = { client_assertion_type: ASSERTION_TYPE, client_assertion: assertion(), client_id: CLIENT };
    const known = await client.authenticate({ fields, form });
    expect(known).to.deep.include({ kind: 'registered', clientId: CLIENT });
    expect(known.redirectUris).to.deep.equal(['https://bank.example/cb']);
    expect(known.instance).to.equal(undefined);
    expect(known.used.map(({ kind }) => kind)).to.deep.equal(['client_jti']);
    expect(known.used[0]?.expiresAt.getTime()).to.be.at.least((seconds() + 300) * 1000);
  });

  it('signs with an algorithm that the tenant allows', async () => {
    const walletClients = [{ client_id: CLIENT, jwks: { keys: [key.jwk] } }];
    client.configure({ walletClients, algorithms: ['ES256'] });
    expect(await outcome()).to.equal('registered');
    client.configure({ walletClients, algorithms: ['ES384', 'EdDSA'] });
    expect(await outcome()).to.equal('invalid_client');
  });

  it('consumes a separate value for each identifier and client', async () => {
    const both = ['one two', 'one'].map((id) => ({ client_id: id, jwks: { keys: [key.jwk] } }));
    client.configure({ walletClients: both });
    const mark = async (id: string, jti: string) => {
      const text = assertion({ payload: { iss: id, sub: id, jti } });
      const form = { client_assertion_type: ASSERTION_TYPE, client_assertion: text };
      return (await client.authenticate({ fields, form })).used[0]?.hash;
    };
    const marks = [await mark('one two', 'x'), await mark('one', 'two x'), await mark('one', 'x')];
    expect(new Set(marks).size).to.equal(3);
    expect(await mark('one', 'x')).to.equal(marks[2]);
  });

  const accepted: readonly [string, () => string][] = [
    ['aud in an array of one', () => assertion({ payload: { aud: [SERVER] } })],
    ['no typ', () => assertion({ header: { typ: undefined } })],
    ['the type of its own', () => assertion({ header: { typ: 'client-authentication+jwt' } })],
    ['no kid', () => assertion({ header: { kid: undefined } })],
    ['no iat', () => assertion({ payload: { iat: undefined } })],
    ['a beginning', () => assertion({ payload: { nbf: seconds() } })],
    ['an exp 59 seconds ago', () => assertion({ payload: { exp: seconds() - 59 } })],
    ['an end in ten minutes', () => assertion({ payload: { exp: seconds() + 600 } })],
  ];
  for (const [what, text] of accepted) {
    it(`is accepted with ${what}`, async () => {
      expect(await outcome(text())).to.equal('registered');
    });
  }

  const refused: readonly [string, () => string][] = [
    ['the signature of another key', () => assertion({ key: newKey() })],
    ['a kid that is not registered', () => assertion({ header: { kid: 'two' } })],
    ['alg none', () => assertion({ header: { alg: 'none' } })],
    ['alg HS256', () => assertion({ header: { alg: 'HS256' } })],
    ['a critical header', () => assertion({ header: { crit: ['x'], x: 1 } })],
    ['the type of another token', () => assertion({ header: { typ: 'dpop+jwt' } })],
    ['an iss that is not sub', () => assertion({ payload: { iss: 'https://other.example' } })],
    ['no sub', () => assertion({ payload: { sub: undefined } })],
    ['a client that is not registered', () => assertion({ payload: { iss: 'x', sub: 'x' } })],
    ['aud of an endpoint', () => assertion({ payload: { aud: `${SERVER}/token` } })],
    ['two aud', () => assertion({ payload: { aud: [SERVER, `${SERVER}/token`] } })],
    ['no exp', () => assertion({ payload: { exp: undefined } })],
    ['an exp 60 seconds ago', () => assertion({ payload: { exp: seconds() - 60 } })],
    ['an exp too far ahead', () => assertion({ payload: { exp: seconds() + 601 } })],
    ['an iat long ago', () => assertion({ payload: { iat: seconds() - 601 } })],
    ['an iat in the future', () => assertion({ payload: { iat: seconds() + 61 } })],
    ['an nbf in the future', () => assertion({ payload: { nbf: seconds() + 61 } })],
    ['an iat that is a text', () => assertion({ payload: { iat: `${seconds()}` } })],
    ['an nbf that is a text', () => assertion({ payload: { nbf: `${seconds()}` } })],
    ['an empty jti', () => assertion({ payload: { jti: '' } })],
    ['no jti', () => assertion({ payload: { jti: undefined } })],
    ['a jti that is too long', () => assertion({ payload: { jti: 'x'.repeat(257) } })],
    ['no JWT', () => 'nonsense'],
  ];
  for (const [what, text] of refused) {
    it(`is rejected with ${what}`, async () => {
      expect(await outcome(text())).to.equal('invalid_client');
    });
  }

  it('is rejected with another type, without one, and with a type alone', async () => {
    const saml = 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer';
    expect(await outcome(undefined, { client_assertion_type: saml })).to.equal('invalid_client');
    for (const form of [{ client_assertion: assertion() }, { client_assertion_type: ASSERTION_TYPE }]) {
      expect(await client.outcome({ fields, form })).to.equal('invalid_client');
    }
  });

  describe('with an unverified assertion', () => {
    const open = (text: string) => parseAssertion({ client_assertion_type: ASSERTION_TYPE, client_assertion: text });
    const unopened: readonly [string, () => string][] = [
      ['neither iss nor sub', () => assertion({ payload: { iss: undefined, sub: undefined } })],
      ['an empty sub', () => assertion({ payload: { iss: '', sub: '' } })],
      ['a sub that is not a string', () => assertion({ payload: { iss: 7, sub: 7 } })],
      ['a typ that is not a string', () => assertion({ header: { typ: 7 } })],
      ['more than any wallet has to say', () => assertion({ payload: { x: 'x'.repeat(16_384) } })],
    ];
    for (const [what, text] of unopened) {
      it(`is rejected with ${what}`, () => expect(() => open(text())).to.throw(/client_assertion/));
    }

    it('is rejected with a type alone', () => {
      expect(() => parseAssertion({ client_assertion_type: ASSERTION_TYPE })).to.throw(/must be sent together/);
      expect(parseAssertion({ client_id: CLIENT })).to.equal(undefined);
    });

    it('is verified with keys of its algorithm, selected by kid', () => {
      const keys = [key.jwk, { ...key.jwk, kid: 'one' }, { ...key.jwk, kid: 'two' }];
      const found = (header: object) => {
        const opened = open(assertion({ header: { ...header } }));
        return opened === undefined ? 0 : keysFor(opened, { keys } as never).length;
      };
      expect(found({ kid: 'one' }), 'those without a name count too').to.equal(2);
      expect(found({ kid: undefined })).to.equal(3);
      expect(found({ kid: 7 }), 'a name that is no text is none').to.equal(3);
      expect(found({ alg: 'ES384' })).to.equal(0);
    });
  });

  it('is rejected under another client_id', async () => {
    expect(await outcome(undefined, { client_id: 'https://other.example' })).to.equal('invalid_client');
  });
  it('is rejected without an assertion, even if other wallets need none', async () => {
    const { walletClients } = await client.configured.issuance();
    client.configure({ walletAttestationRequired: false, walletClients });
    expect(await client.outcome({ fields, form: { client_id: CLIENT } })).to.equal('invalid_client');
    expect(await client.outcome({ fields, form: { client_id: 'other' } })).to.equal('public');
  });

  describe('with the address of its key set', () => {
    let keys: unknown[];
    const calls = () => client.world.remote.calls.length;

    beforeEach(() => {
      keys = [{ ...key.jwk, kid: 'one' }];
      client.configure({ walletClients: [{ client_id: CLIENT, jwks_uri: JWKS_URI }] });
      client.world.remote.answer = (): RemoteResponse => ({
        status: 200,
        contentType: 'application/jwk-set+json',
        body: Buffer.from(JSON.stringify({ keys })),
      });
    });

    it('is accepted, and its keys are cached for ten minutes', async () => {
      expect(await Promise.all([outcome(), outcome(), outcome()])).to.deep.equal(Array(3).fill('registered'));
      client.world.clock.time += 599_000;
      expect(await outcome()).to.equal('registered');
      expect(calls()).to.equal(1);
      client.world.clock.time += 1_000;
      expect(await outcome()).to.equal('registered');
      expect(calls()).to.equal(2);
      expect(client.world.remote.following, 'nobody else answers for it').to.deep.equal([]);
    });

    it('is accepted with a new key, which is fetched at most once in 30 seconds', async () => {
      expect(await outcome()).to.equal('registered');
      const second = newKey();
      const withSecond = () => outcome(assertion({ key: second, header: { kid: 'two' } }));
      keys = [{ ...second.jwk, kid: 'two' }];
      client.world.clock.time += 29_000;
      expect(await withSecond()).to.equal('invalid_client');
      expect(calls()).to.equal(1);
      client.world.clock.time += 1_000;
      expect(await withSecond()).to.equal('registered');
      expect(calls()).to.equal(2);
      for (let i = 0; i < 5; i++) await outcome(assertion({ header: { kid: `guess ${i}` } }));
      expect(calls()).to.equal(2);
    });

    it('is rejected while its keys are unavailable, with a limited number of requests', async () => {
      const { answer } = client.world.remote;
      client.world.remote.answer = () => new RemoteError('timeout', 'nobody there');
      for (let i = 0; i < 5; i++) expect(await outcome()).to.equal('invalid_client');
      expect(calls()).to.equal(1);
      client.world.remote.answer = answer;
      client.world.clock.time += 30_000;
      expect(await outcome()).to.equal('registered');
    });

    it('keeps its cached keys when newer ones are unavailable', async () => {
      expect(await outcome()).to.equal('registered');
      client.world.remote.answer = () => ({ status: 500, contentType: '', body: Buffer.alloc(0) });
      client.world.clock.time += 30_000;
      expect(await outcome(assertion({ header: { kid: 'two' } }))).to.equal('invalid_client');
      expect(await outcome()).to.equal('registered');
    });

    it('is rejected with a key for encryption', async () => {
      keys = [{ ...key.jwk, kid: 'one', use: 'enc' }];
      expect(await outcome()).to.equal('invalid_client');
    });

    for (const body of ['[]', '{"keys":{}}', 'nonsense', '{"keys":[7,null,{"kty":"RSA"}]}']) {
      it(`is rejected with the key set ${body}`, async () => {
        client.world.remote.answer = () => ({ status: 200, contentType: '', body: Buffer.from(body) });
        expect(await outcome()).to.equal('invalid_client');
      });
    }
  });
});
