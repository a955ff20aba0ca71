import { X509Certificate as NodeCertificate } from 'node:crypto';
import {
  AuthorityInfoAccessExtension,
  CertificatePolicyExtension,
  CRLDistributionPointsExtension,
  ExtendedKeyUsageExtension,
  IssuerAlternativeNameExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
} from '@peculiar/x509';
import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { RevocationLists } from '../../application/certificate-status/revocation-lists.ts';
import { Store } from '../../application/ports/store.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parseCrl } from '../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../domain/formats/der/crl-entries.ts';
import { revocationSourcesOf } from '../../domain/formats/der/revocation-sources.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { findListProblem, findTimeProblem } from '../../domain/verification/certificate-revocation.ts';
import { databases, rawSql } from '../support/databases.ts';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const ORGANIZATION = {
  organization: 'Acme GmbH',
  organizationIdentifier: 'VATDE-123456789',
  country: 'DE',
  contact: 'mailto:trust@acme.example',
};
const der = (base64: string) => Buffer.from(base64, 'base64');
const parse = (base64: string) => new X509Certificate(der(base64));
const listAddressOf = (base64: string) => revocationSourcesOf(base64).points[0]?.[0] ?? '';

describe('the authorities of a tenant', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let root: string;

  before(async () => {
    service = await startTestService();
    root = await service.rootToken();
    tenant = await createTenant(service, 'acme', ORGANIZATION);
    await createTenant(service, 'silent');
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token: tenant.token, ...(json === undefined ? {} : { json }) });
  const chainsOf = (id: string): Promise<readonly KeyChain[]> =>
    service.service.container.get(Store).forTenant(id as never, ({ keyChains }) => keyChains.list());
  const chain = async (id: string, tenant = 'acme'): Promise<KeyChain & { root: { certificate: string } }> =>
    (await chainsOf(tenant)).find((one) => one.id === id) as never;
  /** Fetches an address of a certificate from the service. */
  const fetchFromService = async (address: string, headers: Record<string, string> = {}) => {
    expect(address.startsWith(`${service.address}/`), address).to.equal(true);
    return fetch(address, { headers });
  };
  const bytes = async (address: string) => Buffer.from(await (await fetchFromService(address)).arrayBuffer());

  it('satisfy the certificate profile of ISO/IEC 18013-5', async () => {
    const { certificate } = (await chain('signing')).root;
    const [ownParser, parsed] = [parseCertificate(der(certificate)), parse(certificate)];
    expect(parsed.subject).to.equal('C=DE, O=Acme GmbH, CN=Tenant acme CA');
    expect(ownParser?.basicConstraints).to.deep.equal({ critical: true, ca: true, pathLength: 0 });
    expect(ownParser?.subjectKeyId, 'SHA-1 of the key').to.equal(ownParser?.keyHash);
    expect(parsed.getExtension(IssuerAlternativeNameExtension)?.names.toJSON()).to.deep.equal([
      { type: 'email', value: 'trust@acme.example' },
    ]);
    expect(listAddressOf(certificate)).to.match(/\/acme\/crl\/[0-9a-f]{40}$/);
  });

  it('sign document signer certificates that mdoc readers accept', async () => {
    const { active, root: ca } = await chain('signing');
    const [signer = ''] = active.documentSigner ?? [];
    const parsed = parse(signer);
    expect(parsed.subject).to.equal('C=DE, O=Acme GmbH, CN=Tenant acme');
    const purposes = parsed.getExtension(ExtendedKeyUsageExtension);
    expect([purposes?.usages, purposes?.critical]).to.deep.equal([['1.0.18013.5.1.2'], true]);
    const parsedSigner = parseCertificate(der(signer));
    expect(parsedSigner?.subjectKeyId).to.equal(parsedSigner?.keyHash);
    expect(parsedSigner?.authorityKeyId).to.equal(parseCertificate(der(ca.certificate))?.subjectKeyId);
    expect(parsed.getExtension(IssuerAlternativeNameExtension)?.names.toJSON()).to.deep.equal([
      { type: 'email', value: 'trust@acme.example' },
    ]);
    expect(parsed.getExtension(CRLDistributionPointsExtension)?.critical).to.equal(false);
    expect(listAddressOf(signer)).to.equal(listAddressOf(ca.certificate));
  });

  it('sign access certificates that name their subject', async () => {
    const { active } = await chain('access');
    const parsed = parse(active.certificates[0] ?? '');
    expect(parsed.subjectName.getField('2.5.4.97')).to.deep.equal(['VATDE-123456789']);
    expect(parsed.getExtension(CertificatePolicyExtension)?.policies).to.deep.equal(['0.4.0.194118.1.2']);
    expect(parsed.getExtension(SubjectAlternativeNameExtension)?.names.toJSON()).to.deep.include({
      type: 'email',
      value: 'trust@acme.example',
    });
    const { active: otherChain } = await chain('access', 'silent');
    expect(parse(otherChain.certificates[0] ?? '').getExtension(CertificatePolicyExtension)).to.equal(null);
  });

  it('serve their certificate at the address in the certificates that they issued', async () => {
    const { active, root: ca } = await chain('access');
    const names = parse(active.certificates[0] ?? '').getExtension(AuthorityInfoAccessExtension)?.caIssuers;
    const answer = await fetchFromService(names?.[0]?.value ?? '');
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/pkix-cert']);
    expect(Buffer.from(await answer.arrayBuffer()).toString('base64')).to.equal(ca.certificate);
  });

  it('serve a revocation list that readers accept while it is valid', async () => {
    const { certificate } = (await chain('signing')).root;
    const address = listAddressOf(certificate);
    const answer = await fetchFromService(address);
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/pkix-crl']);
    expect(answer.headers.get('cache-control')).to.equal('public, max-age=3600');
    const etag = answer.headers.get('etag') ?? '';
    const list = parseCrl(Buffer.from(await answer.arrayBuffer()));
    expect(new NodeCertificates().hasSigned(certificate, list)).to.equal(true);
    const issuer = parseCertificate(der(certificate));
    expect(issuer && (findListProblem(list, issuer) ?? findTimeProblem(list, new Date()))).to.equal(undefined);
    expect(list.nextUpdate?.getTime()).to.be.greaterThan(Date.now() + 6 * 24 * 3_600_000);
    expect((await fetchFromService(address, { 'If-None-Match': etag })).status).to.equal(304);
    expect((await bytes(address)).equals(await bytes(address)), 'the list is signed once').to.equal(true);
  });

  it('list the certificates of a compromised key, which is no longer published', async () => {
    const before = await chain('signing');
    const keys = async () => (await service.call('GET', '/acme/.well-known/jwks.json')).body.keys.length;
    expect((await call('POST', '/key-chain/signing/rotate', {})).status).to.equal(200);
    expect(await keys(), 'a previous key is published').to.equal(2);
    const address = listAddressOf(before.root.certificate);
    const revoked = async (certificate: string) =>
      new RevokedEntries(parseCrl(await bytes(address)).entries).find(revocationSourcesOf(certificate).serial);
    const [present = ''] = (await chain('signing')).active.certificates;
    const [signer = ''] = (await chain('signing')).active.documentSigner ?? [];
    expect((await call('POST', '/key-chain/signing/rotate', { compromised: true })).status).to.equal(200);
    expect(await keys(), 'a compromised key is not published').to.equal(2);
    expect(await revoked(before.active.certificates[0] ?? ''), 'a rotated key is not revoked').to.equal(undefined);
    for (const certificate of [present, signer]) {
      const entry = await revoked(certificate);
      expect(entry?.reason).to.match(/compromise/i);
      expect(entry?.since?.getTime()).to.be.closeTo(Date.now(), 10_000);
    }
    const [next = ''] = (await chain('signing')).active.certificates;
    expect(await revoked(next)).to.equal(undefined);
  });

  it('are checked by this service without an HTTP call', async () => {
    const { certificate } = (await chain('signing')).root;
    const lists = service.service.container.get(RevocationLists);
    const { list } = await lists.get('silent', listAddressOf(certificate), certificate);
    expect(list.thisUpdate.getTime()).to.be.lessThan(Date.now() + 1);
  });

  it('are published while the tenant is suspended, without data of other tenants', async () => {
    const { certificate } = (await chain('signing')).root;
    const otherRoot = (await chain('signing', 'silent')).root.certificate;
    const address = listAddressOf(certificate);
    await service.call('PATCH', '/tenant/acme', { token: root, json: { status: 'suspended' } });
    expect((await fetchFromService(address)).status).to.equal(200);
    await service.call('PATCH', '/tenant/acme', { token: root, json: { status: 'active' } });
    const foreignAddress = address.replace(/[0-9a-f]{40}$/, listAddressOf(otherRoot).slice(-40));
    for (const path of [foreignAddress, `${service.address}/acme/crl/x`, `${service.address}/no-such-tenant/crl/${'0'.repeat(40)}`])
      expect((await fetchFromService(path)).status, path).to.equal(404);
  });

  it('issue certificates that Node parses, with any contact', async () => {
    for (const contact of ['mailto:a%E0%A4@b.example', 'mailto:a@b.example?subject=x', 'tel:+49301234']) {
      const id = `contact-${contact.length}`;
      await createTenant(service, id, { contact });
      for (const { active } of await chainsOf(id))
        expect(() => new NodeCertificate(der(active.certificates[0] ?? '')), contact).to.not.throw();
    }
  });
});

const ALL = ['access', 'signing', 'trustList', 'statusList'];

describe('One authority for access and for issuance', () => {
  let service: TestService;
  let token: string;
  let european: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    ({ token: european } = await createTenant(service, 'european', { profile: 'eu' }));
  });
  after(() => service.close());

  const KEY = {
    ...{ kty: 'EC', crv: 'P-256', x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU' },
    ...{ y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0', d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI' },
  };
  const CALLS: [string, string, string, object, string][] = [
    ['POST /certs with another usage', 'POST', '/certs', { keyId: 'signing', certUsageTypes: ['access'] }, 'certUsageTypes'],
    ['POST /certs with all usages', 'POST', '/certs', { keyId: 'signing', certUsageTypes: ALL }, 'certUsageTypes'],
    ['POST /certs of an access key', 'POST', '/certs', { keyId: 'access', certUsageTypes: ['signing'] }, 'certUsageTypes'],
    ['PATCH /certs', 'PATCH', '/certs/trust-list', { certUsageTypes: ALL }, 'certUsageTypes'],
    ['PATCH /key-chain', 'PATCH', '/key-chain/access', { usages: ALL }, 'usages'],
    ['POST /key-chain with all usages', 'POST', '/key-chain', { usages: ALL }, 'usages'],
    ['POST /key-chain under another root', 'POST', '/key-chain', { usages: ['access'], rootKeyChainId: 'signing' }, 'rootKeyChainId'],
    ['POST /key-chain/import', 'POST', '/key-chain/import', { usages: ALL, key: KEY }, 'usages'],
  ];
  for (const [description, method, path, json, property] of CALLS) {
    it(`is accepted by ${description}, with a warning`, async () => {
      const answer = await service.call(method, path, { token, json });
      expect(answer.status, answer.text).to.equal(method === 'POST' ? 201 : 200);
      const [warning] = answer.body.warnings.filter(({ rule }: { rule: string }) => rule.startsWith('ETSI TS 119 602'));
      expect(warning?.message, answer.text).to.include('one authority certifies keys for access and keys for');
    });

    it(`is rejected by ${description} under the profile eu`, async () => {
      const answer = await service.call(method, path, { token: european, json });
      expect(answer.status, answer.text).to.equal(400);
      const [error] = answer.body.errors;
      expect(error.path).to.equal(property);
      expect(error.message).to.match(/^profile eu .*one authority certifies keys for access.*POST \/key-chain/);
    });
  }

  it('is kept by a tenant with the profile eu that has it from an earlier release, also when its key is rotated', async () => {
    const database = await databases()[0]?.open();
    const url = database?.url ?? '';
    const secondService = await startTestService({ DATABASE_URL: url });
    const { token: tokenOfOlder } = await createTenant(secondService, 'older');
    const json = { id: 'all', usages: ALL };
    expect((await secondService.call('POST', '/key-chain', { token: tokenOfOlder, json })).status).to.equal(201);
    await rawSql(url, (run) => run("update tenants set profile = 'eu', version = version + 1 where id = 'older'"));
    await secondService.close();
    const service = await startTestService({ DATABASE_URL: url });
    const call = (method: string, path: string, body: object) => service.call(method, path, { token: tokenOfOlder, json: body });
    const renaming = await call('PATCH', '/key-chain/all', { description: 'For all' });
    expect(renaming.status, renaming.text).to.equal(200);
    const rotation = await call('POST', '/key-chain/all/rotate', {});
    expect(rotation.status, rotation.text).to.equal(200);
    const change = await call('PATCH', '/key-chain/all', { usages: ['access', 'signing'] });
    expect(change.status, change.text).to.equal(400);
    await service.close();
    await database?.drop();
  });

  it('gets no warning while access and issuance have separate authorities', async () => {
    const json = { usages: ['access'] };
    const { body } = await service.call('POST', '/key-chain', { token, json });
    expect(body.warnings).to.deep.equal([]);
  });
});
