import { expect } from 'chai';
import { ConfigFolder } from '../support/config-folder.ts';
import { runCommand } from '../support/programs.ts';
import { certify, pem } from '../support/test-certificates.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const PROFILE_TERMS = /HAIP|\bARF\b|EUDI|European Digital Identity/;

const display = [{ name: 'Acme', locale: 'en' }];
const UPSTREAM = { issuer: 'https://login.example', clientId: 'c' };
const QUERY = { id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid'] } };
const MDOC_QUERY = { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } };
const sdJwt = (changes: object) => ({
  vct: 'urn:acme:card:1',
  config: { format: 'dc+sd-jwt', display },
  claims: { name: 'Ada' },
  ...changes,
});
const mdoc = (changes: object) => ({
  config: { format: 'mso_mdoc', display, docType: 'com.acme.card', claims: [{ path: ['com.acme', 'name'] }] },
  claims: { 'com.acme': { name: 'Ada' } },
  ...changes,
});
const FIRST_CREDENTIALS: readonly [string, object][] = [
  ['sd-jwt', sdJwt({ keyBinding: true, proofTypes: ['jwt'] })],
  ['mdoc', mdoc({ keyBinding: true, proofTypes: ['jwt'] })],
];
const CREDENTIALS: readonly [string, object][] = [
  ...FIRST_CREDENTIALS,
  ['sd-jwt-unbound', sdJwt({ keyBinding: false })],
  ['sd-jwt-one-proof', sdJwt({ keyBinding: true, keyAttestationsRequired: {}, proofTypes: ['attestation'] })],
  ['sd-jwt-follows', sdJwt({ keyBinding: true, keyAttestationsRequired: {}, lifeTime: 864_000 })],
  ['mdoc-one-proof', mdoc({ keyBinding: true, keyAttestationsRequired: {}, proofTypes: ['attestation'] })],
];
const ISSUANCE = {
  display,
  dPopRequired: false,
  dPopNonce: 'off',
  walletAttestationRequired: false,
  attestationChallenge: 'optional',
  algorithms: ['ES256', 'EdDSA'],
  chainedAs: { requireDPoP: false, upstream: UPSTREAM },
};
const presentations = async (): Promise<readonly [string, object][]> => {
  const root = await certify({ name: 'Root', ca: true });
  const leaf = await certify({ name: 'Leaf', by: root });
  return [
    ['plain', { responseMode: 'direct_post', dcql_query: { credentials: [QUERY] } }],
    ['unsigned', { clientIdPrefix: 'redirect_uri', dcql_query: { credentials: [QUERY] } }],
    ['host', { clientIdPrefix: 'x509_san_dns', dcql_query: { credentials: [MDOC_QUERY] } }],
    ['fixation', { requireResponseCode: false, dcql_query: { credentials: [QUERY] } }],
    ['signer', { trustAnchors: [{ certificate: pem(leaf) }], dcql_query: { credentials: [QUERY] } }],
    ['pin', { trustAnchors: [{ certificate: pem(root), pin: true }], dcql_query: { credentials: [QUERY] } }],
    ['copies', { dcql_query: { credentials: [{ ...QUERY, require_cryptographic_holder_binding: false }] } }],
    ['copies-of-mdocs', { dcql_query: { credentials: [{ ...MDOC_QUERY, require_cryptographic_holder_binding: false }] } }],
    [
      'mdoc-confirms',
      {
        dcql_query: { credentials: [MDOC_QUERY] },
        transaction_data: [{ type: 'pay', credential_ids: ['mdl'] }],
        transactionDataElements: { pay: { namespace: 'n', element: 'e' } },
      },
    ],
  ];
};

type Warning = { readonly rule: string; readonly member: string };

describe('warnings of a tenant without a profile', () => {
  let service: TestService;
  let token: string;
  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'plain'));
  });
  after(() => service.close());

  const writeResource = async (method: string, path: string, json: object): Promise<readonly Warning[]> => {
    const answer = await service.call(method, path, { token, json });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    expect(answer.body.warnings, answer.text).to.be.an('array');
    expect(JSON.stringify(answer.body.warnings), path).to.not.match(PROFILE_TERMS);
    return answer.body.warnings;
  };
  const rulesOf = (warnings: readonly Warning[]) => Object.fromEntries(warnings.map((w) => [w.member, w.rule]));

  it('contain general rules for an issuer that contradicts HAIP and the ARF', async () => {
    expect(rulesOf(await writeResource('POST', '/issuer/config', ISSUANCE))).to.deep.equal({
      attestationChallenge: 'Attestation-based client authentication, section 8',
      dPopRequired: 'RFC 9700 section 2.2.1',
      'chainedAs.requireDPoP': 'RFC 9700 section 2.2.1',
    });
    expect(await writeResource('POST', '/issuer/config', { display })).to.deep.equal([]);
    const externalServer = { display, authServers: ['https://as.example'] };
    expect(await writeResource('POST', '/issuer/config', externalServer)).to.deep.equal([]);
  });

  for (const [id, body] of CREDENTIALS)
    it(`contain neither HAIP nor the ARF for the credential configuration ${id}`, async () => {
      await writeResource('POST', '/issuer/credentials', { id, ...body });
      await writeResource('PATCH', `/issuer/credentials/${id}`, { description: 'Changed' });
    });

  it('contain general rules for requests that contradict HAIP', async () => {
    const rules = [];
    for (const [id, body] of await presentations()) {
      const warnings = await writeResource('POST', '/verifier/config', { id, redirectUri: 'https://shop.example/', ...body });
      await writeResource('PATCH', `/verifier/config/${id}`, { description: 'Changed' });
      rules.push([id, ...warnings.map(({ rule }) => rule)]);
    }
    expect(rules).to.deep.equal([
      ['plain'],
      ['unsigned', 'OpenID4VP 1.0 section 3.2'],
      ['host'],
      ['fixation', 'OpenID4VP 1.0 section 14.3'],
      ['signer', 'RFC 5280 section 6.1'],
      ['pin', 'RFC 5280 section 6.1'],
      ['copies', 'OpenID4VP 1.0 section 14.1.1'],
      ['copies-of-mdocs', 'OpenID4VP 1.0 section 14.1.1'],
      ['mdoc-confirms', 'OpenID4VP 1.0 appendix B.2.1'],
    ]);
  });

  it('contain neither HAIP nor the ARF for keys, certificates and settings', async () => {
    const root = await certify({ name: 'Root', ca: true });
    const leaf = await certify({ name: 'Leaf', by: root });
    const key = { ...leaf.privateKey.export({ format: 'jwk' }) };
    await writeResource('POST', '/key-chain', { id: 'ed', usages: ['signing'], algorithm: 'EdDSA' });
    await writeResource('POST', '/key', { id: 'ed-key', algorithm: 'EdDSA' });
    await writeResource('POST', '/certs', { keyId: 'ed-key', certUsageTypes: ['access'] });
    for (const usage of ['access', 'signing', 'statusList']) {
      const chain = { id: `own-${usage}`, usages: [usage], key, certificates: [pem(leaf), pem(root)] };
      await writeResource('POST', '/key-chain/import', chain);
    }
    await writeResource('PATCH', '/key-chain/own-access', { description: 'Changed' });
    await writeResource('PUT', '/status-list-config', { ttl: 864_000, capacity: 100 });
    await writeResource('PUT', '/session-config', { ttlSeconds: 60 });
    const manager = await service.rootToken();
    const body = { id: 'second', name: 'Second', statusListConfig: { ttl: 864_000 } };
    const { body: creation } = await service.call('POST', '/tenant', { token: manager, json: body });
    expect(rulesOf(creation.warnings)).to.deep.equal({ 'statusListConfig.ttl': 'Token Status List section 13.7' });
  });

  it('say that European readers expect separate authorities for an imported certificate of mixed usages', async () => {
    const ca = await certify({ name: 'Authority', ca: true });
    const leaf = await certify({ name: 'Leaf', by: ca });
    const key = { ...leaf.privateKey.export({ format: 'jwk' }) };
    const chain = { usages: ['access', 'signing'], key, certificates: [pem(leaf)] };
    const warnings = await writeResource('POST', '/key-chain/import', { id: 'mixed', ...chain });
    expect(rulesOf(warnings)['usages']).to.equal('ETSI TS 119 602 annexes D and F');
    const { token: european } = await createTenant(service, 'european', { profile: 'eu' });
    const answer = await service.call('POST', '/key-chain/import', { token: european, json: chain });
    expect(answer.status, answer.text).to.equal(400);
    expect(answer.text).to.include('profile eu (ETSI TS 119 602 annexes D and F)');
  });
});

describe('notes of config check', () => {
  let folder: ConfigFolder;
  beforeEach(async () => {
    folder = new ConfigFolder();
    const asFiles = (path: string, bodies: readonly [string, object][]) =>
      Object.fromEntries(bodies.map(([id, body]) => [`plain/${path}/${id}.json`, body]));
    folder.write({
      'plain/tenant.json': { name: 'Plain', statusListConfig: { ttl: 864_000 } },
      'plain/issuance/config.json': ISSUANCE,
      'plain/keys/ed.json': { usages: ['signing'], algorithm: 'EdDSA' },
      'plain/keys/all.json': { usages: ['signing', 'access'] },
      ...asFiles('issuance/credentials', CREDENTIALS),
      ...asFiles('presentation', await presentations()),
    });
  });
  afterEach(() => folder.remove());

  const check = async (...options: string[]) => {
    const { code, stderr } = await runCommand('commands/config-check', [...options, folder.path], {});
    expect(code, stderr).to.equal(0);
    return stderr;
  };

  it('contain neither HAIP nor the ARF for a tenant without a profile', async () => {
    const notes = await check();
    expect(notes).to.include('note: plain/issuance/config.json: dPopRequired: ');
    expect(notes).to.include('note: plain/tenant.json: statusListConfig.ttl: ');
    expect(notes).to.include('note: plain/keys/all.json: usages: ');
    expect(notes).to.not.match(PROFILE_TERMS);
  });

  it('match the profile of --profile', async () => {
    const haip = await check('--profile', 'haip');
    expect(haip).to.match(
      /^note: plain\/issuance\/config\.json: dPopRequired: .*\(HAIP 1\.0 section 4, .*; the profile haip rejects it\)/m,
    );
    expect(haip).to.match(/^note: plain\/presentation\/plain\.json: responseMode: .*HAIP 1\.0 section/m);
    const eu = await check('--profile=eu');
    expect(eu).to.match(/^note: plain\/issuance\/config\.json: algorithms: .*ARF 3\.0 OIA_03/m);
    expect(eu).to.match(/^note: plain\/keys\/ed\.json: algorithm: .*ARF 3\.0 OIA_03/m);
    expect(haip).to.not.include('keys/ed.json');
  });

  it('are not printed for an unknown profile, whose error lists the valid profiles', async () => {
    for (const name of ['arf', '']) {
      const args = [`--profile=${name}`, folder.path];
      const { code, stdout, stderr } = await runCommand('commands/config-check', args, {});
      expect([code, stdout]).to.deep.equal([2, '']);
      expect(stderr).to.include(`Unknown profile "${name}" in --profile. Allowed: haip, eu.`);
    }
  });

  it('of a tenant with a profile match this profile', async () => {
    folder.write({ 'other/tenant.json': { name: 'Other', profile: 'haip' } });
    folder.write({ 'other/issuance/credentials/card.json': sdJwt({ keyBinding: true }) });
    const attestationNote = /^note: other\/issuance\/credentials\/card\.json: keyAttestationsRequired: .*HAIP/m;
    expect(await check()).to.match(attestationNote);
    expect(await check('--profile', 'eu')).to.match(attestationNote);
  });
});
