import { expect } from 'chai';
import { presentMdoc } from '../support/mdoc-maker.ts';
import { newKey } from '../support/raw-wallet.ts';
import { CapturedLog } from '../support/recorded-log.ts';
import { makeSdJwt, type SdJwtOverrides, saltedDisclosure } from '../support/sd-jwt-maker.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const SECRET = 'Erika-Whose-Name-Is-Nobodys-Business';
const VCT = 'urn:example:card:1';
const DOC_TYPE = 'org.example.card.1';
const NAMESPACE = 'org.example.card';

describe('presentation configuration that is tried through the API', () => {
  let service: TestService;
  let log: CapturedLog;
  let token: string;
  let signer: CertifiedKey;
  const now = Math.floor(Date.now() / 1000);

  before(async () => {
    log = new CapturedLog();
    service = await startTestService({ LOG_LEVEL: 'debug' });
    ({ token } = await createTenant(service, 'acme'));
    const ca = await certify({ name: 'Authority', ca: true });
    signer = await certify({ name: 'Signer', by: ca });
    const credentials = [
      { id: 'card', format: 'dc+sd-jwt', meta: { vct_values: [VCT] }, claims: [{ path: ['name'] }] },
      { id: 'plastic', format: 'mso_mdoc', meta: { doctype_value: DOC_TYPE }, claims: [{ path: [NAMESPACE, 'name'] }] },
    ];
    const json = { id: 'both', dcql_query: { credentials }, trustAnchors: [{ certificate: pem(ca) }] };
    const creation = await service.call('POST', '/verifier/config', { token, json });
    expect(creation.status, creation.text).to.equal(201);
  });
  after(async () => {
    await service.close();
    log.close();
  });

  const attempt = (presentation: unknown, id = 'both', by = token) =>
    service.call('POST', `/verifier/config/${id}/try`, { token: by, json: { presentation } });
  const issuer = () => ({ key: signer, chain: [signer.certificate] });
  const card = (changes: SdJwtOverrides = {}) =>
    makeSdJwt(
      {
        ...{ issuer: issuer(), holder: newKey(), visible: { vct: VCT }, hidden: { name: SECRET } },
        ...{ audience: 'other', nonce: 'none', now },
      },
      changes,
    );
  const createLicence = () =>
    presentMdoc({
      ...{ issuer: issuer(), holder: newKey(), docType: DOC_TYPE, transcript: Buffer.of(0x80), now },
      elements: { [NAMESPACE]: { name: SECRET } },
    });

  it('evaluates an SD-JWT VC and an mdoc without returning values, and without logging them', async () => {
    const vp_token = { card: [card()], plastic: [createLicence()] };
    const response = await attempt(JSON.stringify({ vp_token }));
    expect(response.status, response.text).to.equal(200);
    expect(response.body.missing).to.deep.equal([]);
    expect(response.body.presentations.map(({ shown: disclosed }: { shown: unknown }) => disclosed)).to.deep.equal([
      [['name']],
      [[NAMESPACE, 'name']],
    ]);
    const changedResponse = await attempt(card({ changeDisclosures: () => [saltedDisclosure('name', SECRET)] }));
    const forgedResponse = await attempt(card({ issuerKey: newKey() }));
    expect([changedResponse, forgedResponse].map(({ body }) => body.presentations[0].queries[0].reason)).to.deep.equal([
      'unreferenced_disclosure',
      'issuer_signature',
    ]);
    const entries = await service.call('GET', '/audit-log?limit=100', { token });
    const sessions = await service.call('GET', '/session', { token });
    expect(sessions.body).to.deep.equal([]);
    // The line of a request is written after its response.
    await new Promise((resolve) => setTimeout(resolve, 20));
    const logText = JSON.stringify(log.lines(service));
    expect(logText).to.include('/verifier/config/');
    for (const text of [response.text, changedResponse.text, forgedResponse.text, entries.text, logText])
      expect(text).to.not.include(SECRET).and.not.include(Buffer.from(SECRET).toString('base64url'));
  });

  it('rejects invalid and too large presentations and unknown configurations', async () => {
    const sentence = await attempt('nonsense');
    expect([sentence.status, sentence.body.errors[0].path]).to.deep.equal([400, 'presentation']);
    expect(sentence.body.errors[0].message).to.match(/neither an SD-JWT VC nor an mdoc/);
    expect((await attempt('')).status).to.equal(400);
    expect((await attempt('a'.repeat(2_400_001))).status).to.equal(400);
    expect((await attempt('a'.repeat(2_700_000))).status).to.equal(413);
    expect((await attempt(card(), 'other')).status).to.equal(404);
    const broken = await attempt(`${'a'.repeat(600_000)}~`);
    expect(broken.body.presentations[0].queries[0].reason).to.equal('malformed');
  });

  it('is inaccessible to another tenant', async () => {
    const otherTenant = await createTenant(service, 'bravo');
    expect((await attempt(card(), 'both', otherTenant.token)).status).to.equal(404);
  });
});
