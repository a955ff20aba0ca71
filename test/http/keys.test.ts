import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { decode, issue, QUERY } from '../support/present.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};

describe('Keys and certificates through HTTP', () => {
  let service: TestService;
  let tenant: { id: string; token: string };

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const created = async (path: string, json: unknown) => {
    const answer = await call('POST', path, json);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const expectInvalid = (answer: Answer, path: string) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
  };

  it('create a leaf that the CA of the key chain certifies', async () => {
    const chain = await created('/key-chain', { id: 'diplomas', usageType: 'signing', subjectName: 'Uni' });
    expect(chain).to.deep.include({ usageType: 'signing', usages: ['signing'], kmsProvider: 'local' });
    const [leaf, root] = [new X509Certificate(chain.activeCertificate), new X509Certificate(chain.rootCertificate)];
    expect(leaf.checkIssued(root) && leaf.verify(root.publicKey), 'the leaf is issued by the root').to.equal(true);
    expect(leaf.verify(leaf.publicKey), 'the leaf is not self-signed').to.equal(false);
    expect([leaf.ca, root.ca]).to.deep.equal([false, true]);
    expect(leaf.subject).to.include('CN=Uni');
    expect(leaf.checkHost('localhost')).to.equal('localhost');
    expect(new Date(leaf.validTo) <= new Date(root.validTo)).to.equal(true);
    expect(new Date(leaf.validTo).toISOString()).to.equal(chain.activeCertificateExpiry);
    const { x, y } = leaf.publicKey.export({ format: 'jwk' });
    expect(chain.activeKey).to.include({ kty: 'EC', crv: 'P-256', alg: 'ES256', x, y });
    const all: Answer = await call('GET', '/key-chain');
    for (const { activeCertificate, rootCertificate } of all.body) {
      const pair = [new X509Certificate(activeCertificate), new X509Certificate(rootCertificate)] as const;
      expect(pair[0].verify(pair[1].publicKey) && !pair[0].verify(pair[0].publicKey)).to.equal(true);
    }
  });

  it('certify credentials and their status lists by one authority', async () => {
    const [signing, lists] = [(await call('GET', '/key-chain/signing')).body, (await call('GET', '/key-chain/status-list')).body];
    expect(lists.rootCertificate).to.equal(signing.rootCertificate);
    expect(lists.activeKey.kid).to.not.equal(signing.activeKey.kid);
    const root = new X509Certificate(lists.rootCertificate);
    expect(new X509Certificate(lists.activeCertificate).verify(root.publicKey)).to.equal(true);
  });

  it('are available under both resource names', async () => {
    const chains: { id: string }[] = (await call('GET', '/key-chain')).body;
    const certificates: { id: string }[] = (await call('GET', '/certs')).body;
    expect(certificates.map(({ id }) => id)).to.have.members(chains.map(({ id }) => id));
    const chain = (await call('GET', '/key-chain/signing')).body;
    const certificate = (await call('GET', '/certs/signing')).body;
    const { activeCertificate, rootCertificate, tenantId } = chain;
    expect(certificate).to.deep.include({ id: 'signing', keyId: 'signing', tenantId });
    expect(certificate.crt).to.deep.equal([activeCertificate, rootCertificate]);
    const { usages, key: _key, ...cert } = certificate;
    expect(usages).to.deep.equal([{ tenantId: 'acme', certId: 'signing', usage: 'signing', cert }]);
    expect(certificate.key.key).to.deep.equal(chain.activeKey);

    const second = await created('/certs', { id: 'signing-2', keyId: 'signing', certUsageTypes: ['signing'] });
    expect(second).to.include({ id: 'signing-2', keyId: 'signing' });
    const leaf = new X509Certificate(second.crt[0]);
    expect(leaf.verify(new X509Certificate(second.crt[1]).publicKey), 'the leaf is signed by the root').to.equal(true);
    const asChain = (await call('GET', '/key-chain/signing-2')).body;
    expect(asChain.activeKey).to.deep.equal(chain.activeKey);
    const ofKey: { id: string }[] = (await call('GET', '/certs?keyId=signing')).body;
    expect(ofKey.map(({ id }) => id)).to.have.members(['signing', 'signing-2']);
    expect((await call('GET', '/certs?keyId=nothing')).body).to.deep.equal([]);
    expect((await call('DELETE', '/key-chain/signing-2')).status).to.equal(200);
    expect((await call('GET', '/certs/signing-2')).status).to.equal(404);
  });

  it('are referenced by either name in configurations, which return both', async () => {
    const creation = await created('/issuer/credentials', { ...CARD, certId: 'diplomas' });
    expect(creation).to.include({ certId: 'diplomas', keyChainId: 'diplomas' });
    const both = { ...CARD, certId: 'diplomas', keyChainId: 'diplomas' };
    expect(await created('/issuer/credentials', both)).to.include({ keyChainId: 'diplomas' });
    const contradictory = { ...CARD, certId: 'diplomas', keyChainId: 'signing' };
    expectInvalid(await call('POST', '/issuer/credentials', contradictory), 'certId');
    const patch = { certId: 'diplomas', keyChainId: 'signing' };
    expectInvalid(await call('PATCH', '/issuer/credentials/card', patch), 'certId');
    const config = { id: 'check', dcql_query: QUERY };
    const verifier = { ...config, accessCertId: 'access', trustAnchors: [{ certId: 'signing' }] };
    const verifierConfiguration = await created('/verifier/config', verifier);
    expect(verifierConfiguration).to.include({ accessCertId: 'access', accessKeyChainId: 'access' });
    expect(verifierConfiguration.trustAnchors).to.deep.equal([{ keyChainId: 'signing', certId: 'signing' }]);
    const contradictoryAccess = { ...config, accessCertId: 'access', accessKeyChainId: 'signing' };
    expectInvalid(await call('POST', '/verifier/config', contradictoryAccess), 'accessCertId');
    const contradictoryAnchors = { ...config, trustAnchors: [{ certId: 'signing', keyChainId: 'access' }] };
    expectInvalid(await call('POST', '/verifier/config', contradictoryAnchors), 'trustAnchors.0.certId');
  });

  it('are reported by the requested name when they do not exist', async () => {
    const config = { id: 'none', dcql_query: QUERY };
    const faults: readonly (readonly [string, object, string])[] = [
      ['/issuer/credentials', { ...CARD, certId: 'no-such-key' }, 'certId'],
      ['/issuer/credentials', { ...CARD, keyChainId: 'no-such-key' }, 'keyChainId'],
      ['/issuer/credentials', { ...CARD, certId: 7 }, 'certId'],
      ['/verifier/config', { ...config, accessCertId: 'no-such-key' }, 'accessCertId'],
      ['/verifier/config', { ...config, trustAnchors: [{ certId: 'no-such-key' }] }, 'trustAnchors.0.certId'],
      ['/status-lists', { certId: 'no-such-key' }, 'certId'],
    ];
    for (const [path, json, expected] of faults) expectInvalid(await call('POST', path, json), expected);
  });

  it('sign the objects that reference them', async () => {
    await call('POST', '/issuer/config', { display: [{ name: 'Acme', locale: 'en' }] });
    const { header } = decode((await issue(service, tenant, 'card')).text);
    const leaf = new X509Certificate(Buffer.from(header['x5c'][0], 'base64'));
    const { activeCertificate } = (await call('GET', '/key-chain/diplomas')).body;
    expect(leaf.toString().trim()).to.equal(activeCertificate.trim());
  });

  it('cannot be deleted or lose their usage while an object references them', async () => {
    for (const path of ['diplomas', 'access', 'signing']) {
      const answer = await call('DELETE', `/key-chain/${path}`);
      expect([answer.status, answer.body.code], path).to.deep.equal([409, 'conflict']);
      expect(answer.body.detail).to.include('configuration');
    }
    const usages = { usages: ['trustList'] };
    expect((await call('PATCH', '/key-chain/diplomas', usages)).status).to.equal(409);
    const change = await call('PATCH', '/key-chain/diplomas', { description: 'Signs diplomas' });
    expect(change.body.description).to.equal('Signs diplomas');
    await created('/key-chain', { id: 'spare', usages: ['access', 'trustList'] });
    const deletion = await call('DELETE', '/key-chain/spare');
    expect([deletion.status, deletion.body]).to.deep.equal([200, { id: 'spare' }]);
    expect((await call('DELETE', '/key-chain/spare')).status).to.equal(404);
  });

  const invalid: [string, string, object, string][] = [
    ['a key chain without usage', '/key-chain', { id: 'x' }, 'usageType'],
    ['certificates without usage', '/certs', { keyId: 'signing', certUsageTypes: [] }, 'certUsageTypes'],
    ['certificates that are invalid', '/certs', { keyId: 'signing', certUsageTypes: ['signing'], crt: 'x' }, 'crt'],
  ];
  for (const [description, path, body, position] of invalid) {
    it(`reject ${description}`, async () => expectInvalid(await call('POST', path, body), position));
  }

  it('reject certificates of another key, existing ids and unknown keys', async () => {
    const { activeCertificate } = (await call('GET', '/key-chain/access')).body;
    const withForeignCertificate = { keyId: 'signing', certUsageTypes: ['signing'], crt: activeCertificate };
    expectInvalid(await call('POST', '/certs', withForeignCertificate), 'crt');
    const existingId = { id: 'signing', usageType: 'signing' };
    expect((await call('POST', '/key-chain', existingId)).status).to.equal(409);
    const unknownKey = { keyId: 'nothing', certUsageTypes: ['signing'] };
    expect((await call('POST', '/certs', unknownKey)).status).to.equal(404);
    expect((await call('GET', '/key-chain/nothing')).status).to.equal(404);
    const missing = { ...CARD, keyChainId: 'nothing' };
    expect((await call('POST', '/issuer/credentials', missing)).status).to.be.oneOf([400, 404]);
  });

  it('never return a private key in any answer', async () => {
    const session = (await issue(service, tenant, 'card')).session;
    const request = { response_type: 'uri', requestId: 'check' };
    const presentationOffer = await created('/verifier/offer', request);
    const root = await service.rootToken();
    const paths = [
      ...['/key-chain', '/key-chain/signing', '/key-chain/providers', '/certs', '/certs/signing'],
      ...['/issuer/config', '/issuer/credentials', '/issuer/credentials/card', '/verifier/config'],
      ...['/session', `/session/${session}`, `/session/${presentationOffer.session}`, '/client', '/client/acme-admin'],
      ...['/session-config', '/status-list-config', '/acme/.well-known/jwks.json', '/acme/status-lists'],
      ...['/acme/.well-known/openid-credential-issuer', '/acme/.well-known/oauth-authorization-server'],
      new URL(presentationOffer.uri).searchParams.get('request_uri') ?? '',
    ];
    const responses = await Promise.all(paths.map((path) => call('GET', path)));
    responses.push(await service.call('GET', '/tenant/acme', { token: root }));
    for (const [i, { status, text }] of responses.entries()) {
      expect(status, paths[i]).to.equal(200);
      const decodedText = text.startsWith('eyJ') ? JSON.stringify(decode(text)) : text;
      expect(decodedText, paths[i]).to.not.match(/"d"\s*:|PRIVATE|sealedKey|"k"\s*:/);
    }
  });
});
