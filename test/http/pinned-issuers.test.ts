import { expect } from 'chai';
import { ConfigFolder } from '../support/config-folder.ts';
import type { JsonProperties } from '../support/sd-jwt-maker.ts';
import { type CertifiedKey, certify, pem, READER } from '../support/test-certificates.ts';
import { startTestService } from '../support/test-service.ts';
import { CARD_QUERY, LICENCE_QUERY, openWorld, type World } from './negative-verification/world.ts';

/** Both formats in one table: what an issuer signs, asked for and presented. */
const FORMATS = [
  ['an SD-JWT VC', CARD_QUERY, 'card'],
  ['an mdoc', LICENCE_QUERY, 'licence'],
] as const;

describe('pinned issuer certificate', () => {
  let world: World;
  /** A certificate that calls itself a CA, may not sign documents and is for something else. */
  let odd: CertifiedKey;
  /** A certificate that the pinned one issued. */
  let below: CertifiedKey;
  before(async () => {
    world = await openWorld();
    odd = await certify({ name: 'Suite wallet', ca: true, purposes: [READER] });
    below = await certify({ name: 'Below', by: odd });
  });
  after(() => world.close());

  async function present(
    query: JsonProperties,
    kind: 'card' | 'licence',
    trustAnchors: readonly unknown[],
    key: CertifiedKey,
    chain = [key.certificate],
  ) {
    const asked = await world.ask({ trustAnchors, dcql_query: { credentials: [query] } });
    const answer = await world.answer(asked, { [kind]: [world[kind](asked, { issuer: { key, chain } })] });
    const { report } = await world.session(asked);
    const reason = (report ?? []).find((entry: JsonProperties) => entry['reason'] !== undefined)?.reason;
    return `${answer.status} ${reason ?? 'accepted'}`;
  }

  for (const [what, query, kind] of FORMATS) {
    it(`is accepted with ${what}, regardless of the contents of its certificate`, async () => {
      const anchors = [{ certificate: pem(odd), pin: true }];
      expect(await present(query, kind, anchors, odd)).to.equal('200 accepted');
    });
    it(`is rejected with ${what} if the same certificate is an anchor without the pin`, async () => {
      for (const more of [{}, { pin: false }]) {
        const anchors = [{ certificate: pem(odd), ...more }];
        expect(await present(query, kind, anchors, odd)).to.equal('400 untrusted_chain');
      }
    });
    it(`makes no certificate that it issued trusted, with ${what}`, async () => {
      const anchors = [{ certificate: pem(odd), pin: true }];
      const chain = [below.certificate, odd.certificate];
      expect(await present(query, kind, anchors, below, chain)).to.equal('400 untrusted_chain');
      expect(await present(query, kind, anchors, below)).to.equal('400 untrusted_chain');
    });
    it(`makes no other certificate of its name trusted, with ${what}`, async () => {
      const impostor = await certify({ name: 'Suite wallet', ca: true, purposes: [READER] });
      const anchors = [{ certificate: pem(odd), pin: true }];
      expect(await present(query, kind, anchors, impostor)).to.equal('400 untrusted_chain');
    });
    it(`is rejected with ${what} once its certificate has expired`, async () => {
      const until = new Date((Math.floor(Date.now() / 1000) + 120) * 1000).toISOString();
      const short = await certify({ name: 'Short', ca: true, until });
      const anchors = [{ certificate: pem(short), pin: true }];
      expect(await present(query, kind, anchors, short)).to.equal('200 accepted');
      const late = await world.later(200, () => present(query, kind, anchors, short));
      expect(late).to.equal('400 certificate_expired');
    });
  }

  it('stays an authority if it is configured as one as well', async () => {
    const driving = { ...CARD_QUERY };
    const both = [{ certificate: pem(odd), pin: true }, { certificate: pem(odd) }];
    expect(await present(driving, 'card', both, odd)).to.equal('200 accepted');
    expect(await present(driving, 'card', both, below)).to.equal('200 accepted');
  });

  it('is saved with a warning, returned as saved, and rejected without a usable certificate', async () => {
    const body = { id: 'pin', dcql_query: { credentials: [CARD_QUERY] } };
    const trustAnchors = [{ certificate: pem(odd), pin: true }];
    const written = await world.admin('POST', '/verifier/config', { ...body, trustAnchors });
    expect(written.status, written.text).to.equal(201);
    const members = written.body.warnings.map(({ member }: JsonProperties) => member);
    expect(members).to.include('trustAnchors.0.certificate');
    expect((await world.admin('GET', '/verifier/config/pin')).body.trustAnchors).to.deep.equal(trustAnchors);

    const ended = await certify({ name: 'Ended', ca: true, until: '2025-06-01T00:00:00Z' });
    for (const [anchor, path] of [
      [{ certificate: pem(ended), pin: true }, 'trustAnchors.0.certificate'],
      [{ certificate: pem(odd), pin: 'true' }, 'trustAnchors.0.pin'],
      [{ keyChainId: 'signing', pin: true }, 'trustAnchors.0.pin'],
      [{ pin: true }, 'trustAnchors.0'],
    ] as const) {
      const refused = await world.admin('POST', '/verifier/config', { ...body, trustAnchors: [anchor] });
      expect([refused.status, refused.body.errors?.[0].path], refused.text).to.deep.equal([400, path]);
    }
  });

  it('is rejected by the profile haip in a new or changed configuration and for a tenant that gets the profile', async () => {
    const root = await world.service.rootToken();
    const profile = (value: string | null) => world.service.call('PATCH', '/tenant/rival', { token: root, json: { profile: value } });
    const body = { id: 'pin', dcql_query: { credentials: [CARD_QUERY] }, redirectUri: 'https://shop.example/done' };
    const pinned = { trustAnchors: [{ certificate: pem(odd), pin: true }] };
    const admin = (method: string, path: string, json?: object) => world.admin(method, path, json, 'rival');

    expect((await admin('POST', '/verifier/config', { ...body, ...pinned })).status).to.equal(201);
    const taken = await profile('haip');
    expect([taken.status, taken.text.includes('trustAnchors.0.certificate')]).to.deep.equal([409, true]);
    expect((await admin('DELETE', '/verifier/config/pin')).status).to.equal(200);
    expect((await profile('haip')).status).to.equal(200);
    const refused = await admin('POST', '/verifier/config', { ...body, ...pinned });
    expect([refused.status, refused.body.errors?.[0].path]).to.deep.equal([400, 'trustAnchors.0.certificate']);
    expect((await admin('POST', '/verifier/config', body)).status).to.equal(201);
    const changed = await admin('PATCH', '/verifier/config/pin', pinned);
    expect([changed.status, changed.body.errors?.[0].path]).to.deep.equal([400, 'trustAnchors.0.certificate']);
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
          trustAnchors: [{ certificate: pem(odd), pin: true }],
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
