import { expect } from 'chai';
import { ConfigFolder } from '../support/config-folder.ts';
import type { JsonProperties } from '../support/sd-jwt-maker.ts';
import { type CertifiedKey, certify, pem, READER } from '../support/test-certificates.ts';
import { startTestService } from '../support/test-service.ts';
import { CARD_QUERY, LICENCE_QUERY, openWorld, type World } from './negative-verification/world.ts';

/** Both formats: description, query and kind of credential. */
const FORMATS = [
  ['an SD-JWT VC', CARD_QUERY, 'card'],
  ['an mdoc', LICENCE_QUERY, 'licence'],
] as const;

describe('pinned issuer certificate', () => {
  let world: World;
  /** A CA certificate that does not allow to sign documents and has another purpose. */
  let pinnedCertificate: CertifiedKey;
  /** A certificate that the pinned certificate issued. */
  let issuedByPinned: CertifiedKey;
  before(async () => {
    world = await openWorld();
    pinnedCertificate = await certify({ name: 'Suite wallet', ca: true, purposes: [READER] });
    issuedByPinned = await certify({ name: 'Below', by: pinnedCertificate });
  });
  after(() => world.close());

  async function present(
    query: JsonProperties,
    kind: 'card' | 'licence',
    trustAnchors: readonly unknown[],
    key: CertifiedKey,
    chain = [key.certificate],
  ) {
    const request = await world.ask({ trustAnchors, dcql_query: { credentials: [query] } });
    const answer = await world.answer(request, { [kind]: [world[kind](request, { issuer: { key, chain } })] });
    const { report } = await world.session(request);
    const reason = (report ?? []).find((entry: JsonProperties) => entry['reason'] !== undefined)?.reason;
    return `${answer.status} ${reason ?? 'accepted'}`;
  }

  for (const [description, query, kind] of FORMATS) {
    it(`is accepted with ${description}, regardless of the contents of its certificate`, async () => {
      const anchors = [{ certificate: pem(pinnedCertificate), pin: true }];
      expect(await present(query, kind, anchors, pinnedCertificate)).to.equal('200 accepted');
    });
    it(`is rejected with ${description} if the same certificate is an anchor without the pin`, async () => {
      for (const withoutPin of [{}, { pin: false }]) {
        const anchors = [{ certificate: pem(pinnedCertificate), ...withoutPin }];
        expect(await present(query, kind, anchors, pinnedCertificate)).to.equal('400 untrusted_chain');
      }
    });
    it(`makes no certificate that it issued trusted, with ${description}`, async () => {
      const anchors = [{ certificate: pem(pinnedCertificate), pin: true }];
      const chain = [issuedByPinned.certificate, pinnedCertificate.certificate];
      expect(await present(query, kind, anchors, issuedByPinned, chain)).to.equal('400 untrusted_chain');
      expect(await present(query, kind, anchors, issuedByPinned)).to.equal('400 untrusted_chain');
    });
    it(`makes no other certificate of its name trusted, with ${description}`, async () => {
      const sameName = await certify({ name: 'Suite wallet', ca: true, purposes: [READER] });
      const anchors = [{ certificate: pem(pinnedCertificate), pin: true }];
      expect(await present(query, kind, anchors, sameName)).to.equal('400 untrusted_chain');
    });
    it(`is rejected with ${description} once its certificate has expired`, async () => {
      const until = new Date((Math.floor(Date.now() / 1000) + 120) * 1000).toISOString();
      const shortLived = await certify({ name: 'Short', ca: true, until });
      const anchors = [{ certificate: pem(shortLived), pin: true }];
      expect(await present(query, kind, anchors, shortLived)).to.equal('200 accepted');
      const lateResult = await world.later(200, () => present(query, kind, anchors, shortLived));
      expect(lateResult).to.equal('400 certificate_expired');
    });
  }

  it('stays an authority if it is configured as one as well', async () => {
    const drivingQuery = { ...CARD_QUERY };
    const both = [{ certificate: pem(pinnedCertificate), pin: true }, { certificate: pem(pinnedCertificate) }];
    expect(await present(drivingQuery, 'card', both, pinnedCertificate)).to.equal('200 accepted');
    expect(await present(drivingQuery, 'card', both, issuedByPinned)).to.equal('200 accepted');
  });

  it('is saved with a warning, returned as saved, and rejected without a usable certificate', async () => {
    const body = { id: 'pin', dcql_query: { credentials: [CARD_QUERY] } };
    const trustAnchors = [{ certificate: pem(pinnedCertificate), pin: true }];
    const creation = await world.admin('POST', '/verifier/config', { ...body, trustAnchors });
    expect(creation.status, creation.text).to.equal(201);
    const properties = creation.body.warnings.map(({ member: property }: JsonProperties) => property);
    expect(properties).to.include('trustAnchors.0.certificate');
    expect((await world.admin('GET', '/verifier/config/pin')).body.trustAnchors).to.deep.equal(trustAnchors);

    const expired = await certify({ name: 'Ended', ca: true, until: '2025-06-01T00:00:00Z' });
    for (const [anchor, path] of [
      [{ certificate: pem(expired), pin: true }, 'trustAnchors.0.certificate'],
      [{ certificate: pem(pinnedCertificate), pin: 'true' }, 'trustAnchors.0.pin'],
      [{ keyChainId: 'signing', pin: true }, 'trustAnchors.0.pin'],
      [{ pin: true }, 'trustAnchors.0'],
    ] as const) {
      const rejection = await world.admin('POST', '/verifier/config', { ...body, trustAnchors: [anchor] });
      expect([rejection.status, rejection.body.errors?.[0].path], rejection.text).to.deep.equal([400, path]);
    }
  });

  it('is rejected by the profile haip in a new or changed configuration and for a tenant that gets the profile', async () => {
    const root = await world.service.rootToken();
    const profile = (value: string | null) => world.service.call('PATCH', '/tenant/rival', { token: root, json: { profile: value } });
    const body = { id: 'pin', dcql_query: { credentials: [CARD_QUERY] }, redirectUri: 'https://shop.example/done' };
    const pinned = { trustAnchors: [{ certificate: pem(pinnedCertificate), pin: true }] };
    const admin = (method: string, path: string, json?: object) => world.admin(method, path, json, 'rival');

    expect((await admin('POST', '/verifier/config', { ...body, ...pinned })).status).to.equal(201);
    const profileResponse = await profile('haip');
    expect([profileResponse.status, profileResponse.text.includes('trustAnchors.0.certificate')]).to.deep.equal([409, true]);
    expect((await admin('DELETE', '/verifier/config/pin')).status).to.equal(200);
    expect((await profile('haip')).status).to.equal(200);
    const rejection = await admin('POST', '/verifier/config', { ...body, ...pinned });
    expect([rejection.status, rejection.body.errors?.[0].path]).to.deep.equal([400, 'trustAnchors.0.certificate']);
    expect((await admin('POST', '/verifier/config', body)).status).to.equal(201);
    const change = await admin('PATCH', '/verifier/config/pin', pinned);
    expect([change.status, change.body.errors?.[0].path]).to.deep.equal([400, 'trustAnchors.0.certificate']);
  });

  describe('in a folder of configuration files', () => {
    let folder: ConfigFolder;
    beforeEach(() => {
      folder = new ConfigFolder();
    });
    afterEach(() => folder.remove());

    const start = async (profile: string | undefined) => {
      folder.write({
        'acme/tenant.json': { name: 'Acme', roles: ['presentation:manage'], ...(profile && { profile }) },
        'acme/presentation/pin.json': {
          dcql_query: { credentials: [CARD_QUERY] },
          redirectUri: 'https://shop.example/done',
          trustAnchors: [{ certificate: pem(pinnedCertificate), pin: true }],
        },
      });
      try {
        await (await startTestService({ CONFIG_FOLDER: folder.path })).close();
        return 'started';
      } catch (error) {
        return String((error as Error).message);
      }
    };

    it('is accepted without a profile and stops the start of a tenant with the profile haip', async () => {
      expect(await start(undefined)).to.equal('started');
      expect(await start('haip'))
        .to.include('trustAnchors.0.certificate')
        .and.include('HAIP 1.0 section 6.1.1');
    });
  });
});
