import { createPublicKey, type JsonWebKey, verify, X509Certificate } from 'node:crypto';
import { Pkcs10CertificateRequest, type SubjectAlternativeNameExtension } from '@peculiar/x509';
import { expect } from 'chai';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { parseSequence } from '../../domain/formats/der/reader.ts';
import { decode, QUERY, requestPresentation, verifyWithLeaf } from '../support/present.ts';
import { newKey } from '../support/raw-wallet.ts';
import { type CertifiedKey, certify, certifyKey, pem } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const VARIANTS = [
  { name: 'certificates', path: '/certs', member: 'crt' },
  { name: 'key chains', path: '/key-chain', member: 'certificates' },
] as const;

const HASHES: Readonly<Record<string, string | null>> = { ES256: 'sha256', ES384: 'sha384', ES512: 'sha512', EdDSA: null };

/** Content of a PKCS#10 request, whose signature is verified without code of the product. */
function readRequest(csr: string, key: JsonWebKey & { alg: string }) {
  const request = new Pkcs10CertificateRequest(csr);
  const publicKey = createPublicKey({ key, format: 'jwk' });
  expect(Buffer.from(request.publicKey.rawData)).to.deep.equal(publicKey.export({ format: 'der', type: 'spki' }));
  const [info, , signature] = parseSequence(Buffer.from(request.rawData));
  const bits = signature?.content.subarray(1) ?? Buffer.alloc(0);
  expect(verify(HASHES[key.alg], info?.encoded ?? Buffer.alloc(0), publicKey, bits), 'signed').to.equal(true);
  const names = request.getExtension('2.5.29.17') as SubjectAlternativeNameExtension | null;
  return { subject: request.subject, hosts: names?.names.items.map(({ value }) => value) };
}

describe('The certificates of a key', () => {
  let service: TestService;
  let token: string;
  let root: CertifiedKey;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
    root = await certify({ name: 'Root', ca: true });
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const created = async (path: string, json: unknown) => {
    const answer = await call('POST', path, json);
    expect(answer.status, answer.text).to.equal(201);
    return answer.body;
  };
  const chainOf = async (id: string) => (await call('GET', `/key-chain/${id}`)).body;
  const expectInvalid = (answer: Answer, path: string, message: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(message);
  };
  const certificateFor = async (id: string, name = 'Outside', overrides: object = {}) => {
    const { activeKey } = await chainOf(id);
    return writePemCertificates([await certifyKey(activeKey, { name, by: root, ...overrides })]);
  };

  for (const { name, path, member } of VARIANTS) {
    describe(`in the terms of ${name}`, () => {
      it('are requested from another CA with a CSR that the key signed', async () => {
        await created('/key-chain', { id: `asks-${member}`, usageType: 'access', subjectName: 'Acme' });
        const subject = { subjectName: 'Acme, Inc.', organization: 'Acme', country: 'DE', dnsNames: ['a.example', 'b.example'] };
        const answer = await call('POST', `${path}/asks-${member}/csr`, subject);
        expect(answer.status, answer.text).to.equal(200);
        const { csr } = answer.body;
        expect(csr).to.match(/^-----BEGIN CERTIFICATE REQUEST-----\n/);
        const { activeKey } = await chainOf(`asks-${member}`);
        const parsedRequest = readRequest(csr, activeKey);
        expect(parsedRequest.subject).to.equal('C=DE, O=Acme, CN=Acme\\, Inc.');
        expect(parsedRequest.hosts).to.deep.equal(subject.dnsNames);
        const plainRequest = (await call('POST', `${path}/asks-${member}/csr`, {})).body.csr;
        expect(readRequest(plainRequest, activeKey)).to.deep.equal({ subject: 'O=Tenant acme, CN=Acme', hosts: ['localhost'] });
        expect((await call('POST', `${path}/nothing/csr`, {})).status).to.equal(404);
        const invalidSubject = { dnsNames: ['a_b'] };
        expectInvalid(await call('POST', `${path}/asks-${member}/csr`, invalidSubject), 'dnsNames.0', /host name/);
      });

      for (const algorithm of ['ES384', 'ES512', 'EdDSA']) {
        it(`are requested with ${algorithm}, too`, async () => {
          const { id, activeKey } = await created('/key-chain', { usageType: 'access', algorithm });
          const { csr } = (await call('POST', `${path}/${id}/csr`, {})).body;
          expect(readRequest(csr, activeKey).subject).to.equal('O=Tenant acme, CN=Tenant acme');
        });
      }

      it('replace those of the internal CA, and requests are signed with them', async () => {
        const id = `uploads-${member}`;
        await created('/key-chain', { id, usageType: 'access' });
        await created('/verifier/config', { id, dcql_query: QUERY, accessKeyChainId: id });
        const before = await chainOf(id);
        const request = await requestPresentation(service, token, id);
        const certificate = await certificateFor(id);
        const answer = await call('PATCH', `${path}/${id}`, { [member]: certificate + pem(root) });
        expect(answer.status, answer.text).to.equal(200);
        const chainAfter = await chainOf(id);
        expect(chainAfter).to.deep.include({
          activeKey: before.activeKey,
          activeCertificate: certificate,
          rootCertificate: null,
          previousCertificate: before.activeCertificate,
          previousKey: before.activeKey,
          lastRotatedAt: null,
        });
        expect(chainAfter.previousKeyExpiry).to.equal(before.activeCertificateExpiry);

        const next = await requestPresentation(service, token, id);
        expect(verifyWithLeaf(next.text).subject).to.equal('CN=Outside');
        expect(next.payload['client_id']).to.not.equal(request.payload['client_id']);
        // A wallet with an earlier presentation request gets the request as it was announced.
        const secondFetch = await service.call('POST', request.url, { form: { wallet_nonce: 'nonce' } });
        expect(decode(secondFetch.text).payload['client_id']).to.equal(request.payload['client_id']);
        verifyWithLeaf(secondFetch.text);

        const secondChange = await call('PATCH', `${path}/${id}`, { [member]: certificate });
        expect(secondChange.status).to.equal(200);
        expect((await chainOf(id)).previousKeys, 'the same certificate changes nothing').to.have.length(1);
      });

      it('are rejected if they do not fit, and nothing changes', async () => {
        const id = `refuses-${member}`;
        await created('/key-chain', { id, usageType: 'access' });
        const before = (await call('GET', `/key-chain/${id}`)).text;
        const largerKey = await created('/key-chain', { usageType: 'access', algorithm: 'ES384' });
        const invalidCertificates: [unknown, RegExp][] = [
          ['garbage', /as PEM, leaf first/],
          [pem(root), /not for this key/],
          [await certificateFor('signing'), /not for this key/],
          [largerKey.activeCertificate, /not for this key/],
          [await certificateFor(id, 'Old', { until: '2026-01-01T00:00:00Z' }), /expired/],
          [await certificateFor(id, 'Authority', { ca: true }), /that of an authority/],
          [pem(root) + (await certificateFor(id)), /not for this key/],
        ];
        for (const [value, message] of invalidCertificates) {
          expectInvalid(await call('PATCH', `${path}/${id}`, { [member]: value }), member, message);
        }
        const largeChange = await call('PATCH', `${path}/${id}`, { [member]: 'A'.repeat(70_000) });
        expect(largeChange.status).to.equal(413);
        expectInvalid(await call('PATCH', `${path}/${id}`, { [member]: 'A'.repeat(50_001) }), member, /./);
        expect((await call('PATCH', `${path}/nothing`, { [member]: pem(root) })).status).to.equal(404);
        expect((await call('GET', `/key-chain/${id}`)).text).to.equal(before);
      });

      it('cannot be removed while a configuration trusts their authority', async () => {
        const id = `trusted-${member}`;
        await created('/key-chain', { id, usages: ['access', 'signing'] });
        await created('/verifier/config', { id, dcql_query: QUERY, trustAnchors: [{ keyChainId: id }] });
        const answer = await call('PATCH', `${path}/${id}`, { [member]: await certificateFor(id) });
        expect([answer.status, answer.body.detail]).to.deep.equal([
          409,
          `the presentation configuration ${id} trusts the CA of this key chain`,
        ]);
        expect((await chainOf(id)).rootCertificate).to.be.a('string');
      });
    });
  }

  it('stay in a trust list after their replacement', async () => {
    await created('/key-chain', { id: 'listed', usageType: 'signing' });
    const { rootCertificate } = await chainOf('listed');
    const entities = [{ type: 'internal', issuerKeyChainId: 'listed', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } }];
    await created('/trust-list', { id: 'list', entities });
    await call('PATCH', '/key-chain/listed', { certificates: await certificateFor('listed') });
    await call('PATCH', '/trust-list/list', { description: 'Again' });
    const { jwt } = (await call('GET', '/trust-list/list')).body;
    const { activeCertificate } = await chainOf('listed');
    const der = (text: string) => new X509Certificate(text).raw.toString('base64');
    const text = JSON.stringify(decode(jwt).payload);
    expect(text).to.include(der(rootCertificate)).and.include(der(activeCertificate));
  });

  it('of a key for mdocs are issued when it gets this usage, and its usages stay separate', async () => {
    const { id } = await created('/key-chain', { usageType: 'trustList', country: 'DE' });
    const change = await call('PATCH', `/certs/${id}`, { certUsageTypes: ['trustList', 'signing'] });
    expect(change.body.usages.map(({ usage }: { usage: string }) => usage)).to.deep.equal(['trustList', 'signing']);
    const mdoc = {
      id: 'mdl',
      keyChainId: id,
      config: {
        format: 'mso_mdoc',
        docType: 'org.iso.18013.5.1.mDL',
        display: [{ name: 'Licence', locale: 'en' }],
        claimsByNamespace: { 'org.iso.18013.5.1': { family_name: 'Lovelace' } },
      },
    };
    const creation = await call('POST', '/issuer/credentials', mdoc);
    expect(creation.status, creation.text).to.be.oneOf([200, 201]);
    const both = { certUsageTypes: ['trustList'], usages: ['signing'] };
    expectInvalid(await call('PATCH', `/certs/${id}`, both), 'usages', /either/);
    expect((await call('PATCH', `/certs/${id}`, { usages: ['trustList'] })).status, 'the key chain is in use').to.equal(409);
  });

  describe('for one usage only', () => {
    const READERS = '1.0.18013.5.1.6';
    const DOCUMENTS = '1.0.18013.5.1.2';
    const importWithPurposes = async (id: string, usage: string, purposes: readonly string[]) => {
      const key = newKey();
      const leaf = await certify({ name: id, by: root, key, purposes });
      const jwk = key.privateKey.export({ format: 'jwk' });
      await created('/key-chain/import', { id, usageType: usage, key: jwk, certificates: pem(leaf) });
      return pem(await certify({ name: id, by: root, key }));
    };
    const readUsages = async (id: string) => (await chainOf(id)).usages;

    for (const [usage, purpose, otherUsages] of [
      ['access', READERS, ['signing', 'statusList', 'trustList']],
      ['signing', DOCUMENTS, ['access', 'statusList', 'trustList']],
    ] as const) {
      it(`limit their key to the usage "${usage}"`, async () => {
        const id = `narrow-${usage}`;
        await importWithPurposes(id, usage, [purpose]);
        for (const otherUsage of otherUsages) {
          const message = new RegExp(`extended key usage .* than "${otherUsage}"`);
          for (const usages of [[usage, otherUsage], [otherUsage]]) {
            expectInvalid(await call('PATCH', `/key-chain/${id}`, { usages }), 'usages', message);
            expectInvalid(await call('PATCH', `/certs/${id}`, { usages }), 'usages', message);
            const asCertificate = await call('PATCH', `/certs/${id}`, { certUsageTypes: usages });
            expectInvalid(asCertificate, 'certUsageTypes', message);
          }
        }
        expect(await readUsages(id)).to.deep.equal([usage]);
        const change = await call('PATCH', `/key-chain/${id}`, { usages: [usage], description: 'The same' });
        expect(change.status, change.text).to.equal(200);
      });
    }

    it('can be replaced together with the usages', async () => {
      const imported = await importWithPurposes('widened', 'access', [READERS]);
      const usages = ['access', 'signing'];
      const answer = await call('PATCH', '/key-chain/widened', { usages, certificates: imported });
      expect(answer.status, answer.text).to.equal(200);
      expect(await readUsages('widened')).to.deep.equal(usages);
    });

    it('limit nothing when their usage is unrelated to credentials', async () => {
      await importWithPurposes('web', 'access', [READERS, '1.3.6.1.5.5.7.3.1']);
      const answer = await call('PATCH', '/certs/web', { certUsageTypes: ['access', 'statusList'] });
      expect(answer.status, answer.text).to.equal(200);
    });
  });

  describe('and their key', () => {
    it('are generated or imported, listed and read, without the private key', async () => {
      const createdKey = await created('/key', { id: 'made', description: 'Made here' });
      expect(createdKey).to.deep.include({
        id: 'made',
        description: 'Made here',
        tenantId: 'acme',
        usage: 'sign',
        kmsProvider: 'local',
        certificates: [{ id: 'made' }],
      });
      expect(createdKey.key).to.have.all.keys('kty', 'crv', 'x', 'y', 'kid', 'alg', 'use');
      const ownKey = newKey();
      const jwk = ownKey.privateKey.export({ format: 'jwk' });
      const importedKey = await created('/key', { id: 'brought', key: jwk, usage: 'sign' });
      expect(importedKey.key).to.include(ownKey.jwk);
      const list: Answer = await call('GET', '/key');
      expect(list.body.map(({ id }: { id: string }) => id)).to.include.members(['made', 'brought', 'signing']);
      expect(list.text).to.not.include(String(jwk.d));
      expect({ ...(await call('GET', '/key/made')).body, warnings: [] }).to.deep.equal(createdKey);
      expect((await call('GET', '/key/nothing')).status).to.equal(404);
      expectInvalid(await call('POST', '/key', { key: jwk, algorithm: 'ES256' }), 'algorithm', /determines its algorithm/);
      expectInvalid(await call('POST', '/key', { key: ownKey.jwk }), 'key', /without "d"/);
      expectInvalid(await call('POST', '/key', { usage: 'encrypt' }), 'usage', /./);
      expect((await call('POST', '/key', { id: 'made' })).status).to.equal(409);
    });

    it('are required before the key signs', async () => {
      const chain = await chainOf('made');
      expect(chain).to.deep.include({ usages: [], usageType: null });
      const credential = {
        id: 'card',
        keyChainId: 'made',
        config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
        vct: 'urn:card:1',
      };
      expectInvalid(await call('POST', '/issuer/credentials', credential), 'keyChainId', /not for the usage/);
      await created('/certs', { id: 'made-cert', keyId: 'made', certUsageTypes: ['signing'] });
      await created('/issuer/credentials', { ...credential, keyChainId: undefined, certId: 'made-cert' });
      const { body } = await call('GET', '/key/made');
      expect(body.certificates).to.deep.equal([{ id: 'made' }, { id: 'made-cert' }]);
      expect((await call('GET', '/key/made-cert')).status, 'the key has one identifier').to.equal(404);
    });

    it('are deleted with the key, or stay while the key is needed', async () => {
      const rejection = await call('DELETE', '/key/made');
      expect([rejection.status, rejection.body.detail]).to.deep.equal([
        409,
        'the key chain made-cert is in use by: credential configuration card',
      ]);
      expect((await call('GET', '/key/made')).status).to.equal(200);
      expect((await call('GET', '/key-chain/made')).status).to.equal(200);
      expect((await call('DELETE', '/certs/made-cert')).status).to.equal(409);
      expect((await call('DELETE', '/issuer/credentials/card')).status).to.equal(200);
      expect((await call('DELETE', '/certs/made-cert')).body).to.deep.equal({ id: 'made-cert' });
      await created('/certs', { id: 'made-again', keyId: 'made', certUsageTypes: ['signing'] });
      expect((await call('DELETE', '/key/made-again')).status).to.equal(404);
      expect((await call('DELETE', '/key/made')).body).to.deep.equal({ id: 'made' });
      for (const path of ['/key/made', '/key-chain/made', '/certs/made-again']) {
        expect((await call('GET', path)).status, path).to.equal(404);
      }
      expect((await call('DELETE', '/key/made')).status).to.equal(404);
    });
  });

  describe('that are self-signed', () => {
    it('are accepted only for trust lists', async () => {
      const chain = await created('/key-chain', { id: 'own', usageType: 'trustList', selfSigned: true });
      const certificate = new X509Certificate(chain.activeCertificate);
      expect(certificate.verify(certificate.publicKey)).to.equal(true);
      expect(chain.rootCertificate).to.equal(null);
      await created('/trust-list', { id: 'own', keyChainId: 'own', entities: [] });
      const { jwt } = (await call('GET', '/trust-list/own')).body;
      expect(verifyWithLeaf(jwt).fingerprint256).to.equal(certificate.fingerprint256);
      for (const usageType of ['signing', 'access', 'statusList']) {
        const rejection = await call('POST', '/key-chain', { usageType, selfSigned: true });
        expectInvalid(rejection, 'selfSigned', /only accepted for "trustList"/);
      }
      const both = { usageType: 'trustList', selfSigned: true, rootKeyChainId: 'signing' };
      expectInvalid(await call('POST', '/key-chain', both), 'selfSigned', /either/);
      expectInvalid(await call('PATCH', '/key-chain/own', { usages: ['trustList', 'access'] }), 'usages', /only accepted for "trustList"/);
      expectInvalid(
        await call('PATCH', '/certs/own', { certUsageTypes: ['trustList', 'access'] }),
        'certUsageTypes',
        /only accepted for "trustList"/,
      );
    });
  });
});
