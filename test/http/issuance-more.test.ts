import { expect } from 'chai';
import sinon from 'sinon';
import { parseSdJwt } from '../../domain/formats/sd-jwt/parse.ts';
import { readIssuerSigned } from '../support/mdoc-maker.ts';
import { createResource, offerBody } from '../support/populated.ts';
import { send } from '../support/raw-request.ts';
import { dpopProof, keyProof, newKey, now, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
const CARD = { id: 'card', config, vct: 'urn:card:1', claims: { name: 'Ada' } };

describe('faulty wallet requests at the issuer', () => {
  let service: TestService;
  let token: string;
  let wallet: RawWallet;
  let accessToken: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createResource(service, token, '/issuer/credentials', CARD);
    await createResource(service, token, '/issuer/credentials', { ...CARD, id: 'unbound', keyBinding: false });
    await createResource(service, token, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    wallet = new RawWallet(service, 'acme');
  });
  after(() => service.close());

  const accessTo = async (id: string) => wallet.accessToken((await createResource(service, token, '/issuer/offer', offerBody(id))).uri);
  beforeEach(async () => {
    accessToken = await accessTo('card');
  });

  const expectError = (answer: Answer, status: number, error: string) =>
    expect([answer.status, answer.body?.error], answer.text).to.deep.equal([status, error]);
  const expectChallenge = (answer: Answer, error: string) => {
    expect(answer.status, answer.text).to.equal(401);
    expect(answer.headers.get('www-authenticate'))
      .to.match(/^DPoP /)
      .and.contain(`error="${error}"`);
  };

  // issuance N3
  it('get metadata as JSON regardless of the Accept header', async () => {
    const headers = { Accept: 'application/xml' };
    const path = '/.well-known/openid-credential-issuer/acme';
    const answer = await service.call('GET', path, { headers });
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/json']);
    expect(answer.body.credential_issuer).to.equal(wallet.issuer);
  });

  // issuance N9
  it('are rejected with claims for an array and for one of its elements', async () => {
    const claims = [{ path: ['a', null] }, { path: ['a', 0] }];
    const json = { ...CARD, id: 'torn', config: { ...config, claims } };
    const answer = await service.call('POST', '/issuer/credentials', { token, json });
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.match(/^config\.claims\./);
  });

  // issuance N76
  it('are rejected with two DPoP headers', async () => {
    const proof = () => dpopProof(wallet.dpopKey, `${wallet.issuer}/credential`, { token: accessToken });
    const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
    const answer = await send(service.address, {
      method: 'POST',
      path: '/acme/credential',
      headers: { 'Content-Type': 'application/json', Authorization: `DPoP ${accessToken}`, DPoP: [proof(), proof()] },
      body: JSON.stringify({ credential_configuration_id: 'card', proofs }),
    });
    expect(answer.status, answer.text).to.equal(401);
    expect(answer.headers['www-authenticate']).to.contain('error="invalid_dpop_proof"');
  });

  // issuance N77
  it('are rejected with an unsigned DPoP proof', async () => {
    const headers = wallet.authorization(accessToken, { header: { alg: 'none' } });
    expectChallenge(await wallet.request(accessToken, 'card', { headers }), 'invalid_dpop_proof');
    const [head, payload] = (headers['DPoP'] ?? '').split('.');
    const unsigned = { ...headers, DPoP: `${head}.${payload}.` };
    expectChallenge(await wallet.request(accessToken, 'card', { headers: unsigned }), 'invalid_dpop_proof');
  });

  it('are rejected with a DPoP proof that is not one well-formed JWT', async () => {
    const proof = () => wallet.authorization(accessToken)['DPoP'] ?? '';
    const [head = '', payload = '', signature = ''] = proof().split('.');
    const malformed = [
      ...[`${proof()},${proof()}`, `${proof()} ${proof()}`, `${proof()}.x`, `${head}.${payload}`, head, 'x', '..'],
      ...[`${head}.${payload}.${signature}=`, `${head}.e30=.${signature}`, `${head}..${signature}`],
      JSON.stringify({ payload, signatures: [{ protected: head, signature }] }),
    ];
    for (const DPoP of malformed) {
      const headers = { ...wallet.authorization(accessToken), DPoP };
      expectChallenge(await wallet.request(accessToken, 'card', { headers }), 'invalid_dpop_proof');
    }
    expect((await wallet.request(accessToken, 'card')).status).to.equal(200);
  });

  // issuance N87
  it('are rejected with an access token in the query', async () => {
    const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce())] };
    const json = { credential_configuration_id: 'card', proofs };
    const { DPoP = '' } = wallet.authorization(accessToken);
    const path = `/acme/credential?access_token=${accessToken}`;
    const answer = await service.call('POST', path, { json, headers: { DPoP } });
    expect(answer.status, answer.text).to.equal(401);
    expect(answer.headers.get('www-authenticate'))
      .to.match(/^DPoP /)
      .and.not.contain('error=');
  });

  // issuance N90
  it('get a nonce regardless of body and token', async () => {
    const headers = { Authorization: 'DPoP garbage', 'Content-Type': 'application/json' };
    const answer = await service.call('POST', '/acme/nonce', { text: '{"garbage', headers });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.body.c_nonce).to.be.a('string');
  });

  // issuance N98
  it('are accepted with unnecessary proofs for a credential without key binding', async () => {
    const unbound = await accessTo('unbound');
    const answer = await wallet.request(unbound, 'unbound');
    expect(answer.status, answer.text).to.equal(200);
    const [jwt = ''] = answer.body.credentials[0].credential.split('~');
    const payload = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
    expect(payload).to.not.have.property('cnf');
  });

  // issuance N102
  it('are rejected when the algorithm of a proof does not fit its key or is not supported', async () => {
    for (const alg of ['ES384', 'EdDSA', 'RS256']) {
      const proofs = { jwt: [keyProof(newKey(), wallet.issuer, await wallet.nonce(), { header: { alg } })] };
      const body = { credential_configuration_id: 'card', proofs };
      expectError(await wallet.request(accessToken, 'card', { body }), 400, 'invalid_proof');
    }
  });

  // issuance N105
  it('are accepted with a nonce of at most five minutes', async () => {
    const nonce = await wallet.nonce();
    const clock = sinon.useFakeTimers({ now: Date.now() + 301_000, toFake: ['Date'] });
    try {
      const later = await accessTo('card');
      expectError(await wallet.request(later, 'card', { nonce }), 400, 'invalid_nonce');
      expect((await wallet.request(later, 'card')).status).to.equal(200);
    } finally {
      clock.restore();
    }
  });
});

describe('issuer whose URL has no port', () => {
  const PUBLIC_URL = 'https://issuer.example';
  let service: TestService;
  before(async () => {
    service = await startTestService({ PUBLIC_URL });
  });
  after(() => service.close());

  // issuance N80
  it('accepts a DPoP proof with the default port and with no other port', async () => {
    const { token } = await createTenant(service, 'acme');
    await createResource(service, token, '/issuer/credentials', CARD);
    await createResource(service, token, '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    const call: TestService['call'] = (method, path, options) => service.call(method, path.replace(PUBLIC_URL, ''), options);
    const wallet = new RawWallet({ ...service, address: PUBLIC_URL, call }, 'acme');
    const accessToken = await wallet.accessToken((await createResource(service, token, '/issuer/offer', offerBody('card'))).uri);
    const statusWith = async (htu: string) => {
      const headers = wallet.authorization(accessToken, { payload: { htu } });
      return (await wallet.request(accessToken, 'card', { headers })).status;
    };
    expect(await statusWith('https://issuer.example:8443/acme/credential')).to.equal(401);
    expect(await statusWith('https://issuer.example:443/acme/credential')).to.equal(200);
  });
});

const display = [{ name: 'Ticket', locale: 'en' }];
const TYPE = 'org.example.ticket';
const FORMATS = {
  'dc+sd-jwt': { config: { format: 'dc+sd-jwt', display }, vct: 'urn:ticket:1' },
  mso_mdoc: { config: { format: 'mso_mdoc', docType: TYPE, display } },
} as const;

describe('credential with a lifetime of minutes', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    await createResource(service, token, '/issuer/config', { display, batchSize: 20 });
    for (const [format, body] of Object.entries(FORMATS)) {
      const ticket = { ...body, id: format.replace('+', '-'), claims: { seat: 'A1' }, lifeTime: 300 };
      const { warnings } = await createResource(service, token, '/issuer/credentials', ticket);
      expect(warnings.map(({ member }: { member: string }) => member)).to.include('lifeTime');
    }
  });
  after(() => service.close());

  const collect = async (id: string): Promise<readonly string[]> => {
    const wallet = new RawWallet(service, 'acme');
    const access = await wallet.accessToken((await createResource(service, token, '/issuer/offer', offerBody(id))).uri);
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: 20 }, () => keyProof(newKey(), wallet.issuer, nonce));
    const body = { credential_configuration_id: id, proofs: { jwt } };
    const answer = await wallet.request(access, id, { body });
    expect(answer.status, answer.text).to.equal(200);
    return answer.body.credentials.map(({ credential }: { credential: string }) => credential);
  };
  const TIMES: Record<string, (text: string) => readonly [number, number]> = {
    'dc+sd-jwt': (text) => {
      const { iat, exp } = parseSdJwt(text).issuer.payload;
      return [Number(iat), Number(exp)];
    },
    mso_mdoc: (text) => {
      const { signed, validFrom, validUntil } = readIssuerSigned(text, TYPE).mso.validity;
      expect(validFrom).to.deep.equal(signed);
      return [signed.getTime() / 1000, validUntil.getTime() / 1000];
    },
  };

  for (const [format, times] of Object.entries(TIMES)) {
    it(`expires within its lifetime, each copy at its own time: ${format}`, async () => {
      const before = now();
      const copies = (await collect(format.replace('+', '-'))).map(times);
      const after = now();
      const hours = [before, after].map((seconds) => Math.floor(seconds / 3600) * 3600);
      for (const [from, until] of copies) {
        expect(hours).to.include(from);
        expect(until).to.be.within(before + 270, after + 300);
      }
      expect(new Set(copies.map(([, until]) => until)).size).to.be.above(5);
    });
  }
});
