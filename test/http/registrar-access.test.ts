import { createHash, createPublicKey, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { ask, verifiedByLeaf } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import type { RegistrarAnswer, TestRegistrar } from '../support/registrar.ts';
import { expectInvalid, expectUnavailable, RegistrarWorld } from '../support/registrar-world.ts';

const PATH = '/registrar/access-certificate';

describe('An access certificate', () => {
  let world: RegistrarWorld;
  let registrar: TestRegistrar;

  before(async () => {
    world = await RegistrarWorld.openRegistered();
    registrar = world.registrar;
  });
  after(() => world.close());
  beforeEach(() => world.forget());
  afterEach(() => {
    registrar.otherKey = undefined;
    registrar.until = undefined;
    registrar.parties = [{ id: 'party-1', name: 'Acme' }];
  });

  const obtain = (changes: object = {}) => world.call('POST', PATH, { keyChainId: 'access', ...changes });
  const keyChain = async (id = 'access') => (await world.call('GET', `/key-chain/${id}`)).body;

  it('is obtained for the key of a key chain, which signs requests under it from then on', async () => {
    const before = await keyChain();
    const answer = await obtain();
    expect(answer.status, answer.text).to.equal(201);
    const [{ body: sent } = { body: undefined }] = registrar.at('/access-certificates');
    expect(sent)
      .to.have.keys('publicKey', 'dns', 'rpId')
      .and.to.deep.include({
        dns: ['localhost'],
        rpId: 'party-1',
      });
    const { kty, crv, x, y } = createPublicKey(sent?.['publicKey']).export({ format: 'jwk' });
    expect(before.activeKey).to.include({ kty, crv, x, y });

    const { id, relyingPartyId, keyChainId, certId, crt, keyChain: chain } = answer.body;
    expect(id).to.be.a('string').with.length.greaterThan(10);
    expect([relyingPartyId, keyChainId, certId]).to.deep.equal(['party-1', 'access', 'access']);
    expect(chain).to.deep.equal(await keyChain());
    expect(chain).to.deep.include({ rootCertificate: null, activeKey: before.activeKey });
    expect(chain.previousCertificate).to.equal(before.activeCertificate);
    expect(crt, 'without the CA, which wallets have').to.have.length(1);

    const asked = await ask(world.service, world.token, 'check');
    const leaf = verifiedByLeaf(asked.text);
    expect(asked.header['x5c']).to.have.length(1);
    expect(leaf.fingerprint256).to.equal(new X509Certificate(crt[0]).fingerprint256);
    expect(leaf.checkIssued(new X509Certificate(Buffer.from(registrar.ca.certificate, 'base64')))).to.equal(
      true,
    );
    const hash = createHash('sha256').update(leaf.raw).digest('base64url');
    expect(asked.payload['client_id']).to.equal(`x509_hash:${hash}`);
  });

  it('leaves requests alone that were made under the one before', async () => {
    const asked = await ask(world.service, world.token, 'check');
    expect((await obtain()).status).to.equal(201);
    const again = await world.service.call('GET', asked.url);
    expect([again.status, again.text]).to.deep.equal([200, asked.text]);
    const posted = await world.service.call('POST', asked.url, { form: { wallet_nonce: 'of-the-wallet' } });
    expect(posted.status, posted.text).to.equal(200);
    expect(verifiedByLeaf(posted.text).fingerprint256).to.equal(verifiedByLeaf(asked.text).fingerprint256);
    const next = await ask(world.service, world.token, 'check');
    expect(next.payload['client_id']).to.not.equal(asked.payload['client_id']);
  });

  it('is for the hosts and the relying party that are named', async () => {
    registrar.parties.push({ id: 'party-2', name: 'Acme Shops' });
    const order = {
      keyChainId: undefined,
      certId: 'access',
      dns: ['a.example', 'b.example'],
      rpId: 'party-2',
    };
    const answer = await obtain(order);
    expect([answer.status, answer.body.relyingPartyId], answer.text).to.deep.equal([201, 'party-2']);
    const names = new X509Certificate(answer.body.crt[0]).subjectAltName;
    expect(names).to.equal('DNS:a.example, DNS:b.example');
  });

  it('is refused for what does not fit, without a call', async () => {
    expectInvalid(await obtain({ keyChainId: 'signing' }), 'keyChainId', 'other usages');
    expectInvalid(await obtain({ dns: ['a_b.example'] }), 'dns.0', 'host name');
    expectInvalid(await obtain({ dns: [] }), 'dns');
    expect(registrar.calls, 'the registrar has not been asked').to.deep.equal([]);
  });

  const bad: [string, () => unknown, string][] = [
    ['for another key', () => (registrar.otherKey = newKey().jwk), 'not for this key'],
    ['that has expired', () => (registrar.until = '2026-01-01T00:00:00Z'), 'expired'],
  ];
  for (const [what, bend, message] of bad) {
    it(`is not taken ${what}`, async () => {
      const before = await keyChain();
      bend();
      expectUnavailable(await obtain(), message);
      expect(await keyChain()).to.deep.equal(before);
    });
  }

  const crt = (text: string): RegistrarAnswer => {
    return (response) => response.writeHead(201).end(JSON.stringify({ id: 'x', crt: text }));
  };
  const answers: [string, RegistrarAnswer, string][] = [
    ['nothing', (response) => response.writeHead(201).end(), 'no registrar says'],
    ['garbage', (response) => response.writeHead(200).end('<html>'), 'no registrar says'],
    ['no certificate', crt('none'), 'as PEM'],
    [
      'a list of something',
      crt(`-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----`),
      'not a cert',
    ],
    ['the certificate of its CA', (r) => crt(caPem())(r, r.req), 'not for this key'],
    ['megabytes', (response) => response.writeHead(201).end(' '.repeat(2 ** 21)), 'too much'],
    ['a redirect', (response) => response.writeHead(307, { Location: '/api/x' }).end(), 'redirect'],
    ['that it is out of order', (response) => response.writeHead(502).end(), 'status 502'],
    ['never', (response) => response.destroy(), 'could not be reached'],
  ];
  const caPem = () => `-----BEGIN CERTIFICATE-----\n${registrar.ca.certificate}\n-----END CERTIFICATE-----`;
  for (const [what, answer, message] of answers) {
    it(`is not there when the registrar answers ${what}`, async () => {
      const before = await keyChain();
      registrar.answers.set('/api/access-certificates', answer);
      expectUnavailable(await obtain(), message);
      expect(await keyChain()).to.deep.equal(before);
    });
  }

  it('is not there when the registrar refuses', async () => {
    registrar.answers.set('/api/access-certificates', (response) => response.writeHead(403).end());
    expectInvalid(await obtain(), 'keyChainId', 'status 403');
  });
});
