import { expect } from 'chai';
import { RegistrarError, type RegistrarFault } from '../../../application/ports/registrar.ts';
import { AccessCertificateOrder, ObtainAccessCertificate } from '../../../application/registrar/obtain-access-certificate.ts';
import { RegistrationCertificateVerifier } from '../../../application/registrar/registration-certificate-verifier.ts';
import {
  ObtainRegistrationCertificate,
  RegistrationCertificateOrder,
} from '../../../application/verification/obtain-registration-certificate.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { makeJwt } from '../../support/raw-wallet.ts';
import { type CertifiedKey, certify, certifyKey } from '../../support/test-certificates.ts';
import { ACME, type AdministrationWorld, anAdministration, endOf } from '../administrators.ts';
import { query } from '../verification/kit.ts';

const LOGIN = {
  registrarUrl: 'https://registrar.example',
  oidcUrl: 'https://login.example',
  clientId: 'vidimus',
  username: 'acme',
  password: 'the password',
};
const DEFAULTS = {
  privacy_policy: 'https://acme.example/privacy',
  support_uri: 'https://acme.example/help',
  purpose: [{ lang: 'en', content: 'Why' }],
};
const [ASKED] = query({ id: 'pid' })['credentials'] as readonly { meta: object; claims: object }[];
const CREDENTIAL = { format: 'dc+sd-jwt', meta: ASKED?.meta, claim: ASKED?.claims };
const FAULTS: [RegistrarFault, string][] = [
  ['refused', 'invalid_input'],
  ['login_refused', 'unavailable'],
  ['bad_answer', 'unavailable'],
  ['unavailable', 'unavailable'],
];

describe('certificate from the registrar of a tenant', () => {
  let world: AdministrationWorld;
  let root: CertifiedKey;
  let signer: CertifiedKey;
  const caller = (allowed: string[] | null = null) => world.caller(['registrar:manage'], { allowedPresentationConfigs: allowed });
  const hasLogin = (changes: object = {}) =>
    world.store.prepare(`a login ${JSON.stringify(changes)}`, () =>
      world.write((own) => {
        const now = world.clock.now();
        const login = { ...LOGIN, id: 'default' as const, createdAt: now, updatedAt: now };
        return own.registrarConfiguration.put({ ...login, registrationCertificateDefaults: DEFAULTS, ...changes });
      }),
    );
  const fails = (fault: RegistrarFault) => {
    world.registrar.fault = new RegistrarError(fault, 'not today');
  };

  before(async () => {
    root = await certify({ name: 'Registrar CA', ca: true });
    signer = await certify({ name: 'Registrar', by: root });
  });
  beforeEach(async () => {
    world = await anAdministration();
  });

  describe('an access certificate', () => {
    let leaf: string | undefined;
    const chainOf = (id = 'access') => world.store.forTenant(ACME, ({ keyChains }) => keyChains.get(id));
    const order = (changes: object = {}) =>
      new ObtainAccessCertificate(world).execute(caller(), AccessCertificateOrder.parse({ keyChainId: 'access', ...changes }));
    const certificateFor = async (id = 'access', until?: string) => {
      const { publicJwk } = (await chainOf(id)).active.key;
      const options = { name: 'Acme', by: root, ...(until !== undefined && { until }) };
      return certifyKey(publicJwk as Parameters<typeof certifyKey>[0], options);
    };

    beforeEach(async () => {
      await hasLogin();
      // All worlds have the same keys.
      leaf ??= await certificateFor();
      world.registrar.accessCertificate = writePemCertificates([leaf, root.certificate]);
    });

    it('is ordered for the first relying party and the host of the service, and signs from then on', async () => {
      const before = await chainOf();
      const { id, relyingPartyId, chain } = await order();
      expect([id, relyingPartyId]).to.deep.equal(['issued', 'party']);
      expect(world.registrar.asked).to.deep.equal(['parties', 'access party id.example']);
      expect(chain)
        .to.deep.equal(await chainOf())
        .and.not.have.property('root');
      expect(chain.active.key).to.deep.equal(before.active.key);
      expect(chain.former?.[0]?.certificates).to.deep.equal(before.active.certificates);
    });

    it('is ordered for the named relying party and hosts', async () => {
      await order({ rpId: 'second', dns: ['a.example', 'b.example'] });
      expect(world.registrar.asked.at(-1)).to.equal('access second a.example,b.example');
    });

    const refusals: [string, object, () => unknown, string][] = [
      ['an unknown key chain', { keyChainId: 'nothing' }, () => {}, 'invalid_input keyChainId'],
      ['a key chain for something else', { keyChainId: 'signing' }, () => {}, 'invalid_input keyChainId'],
      ['an unknown party', { rpId: 'nobody' }, () => {}, 'invalid_input rpId'],
      [
        'an account without party',
        {},
        () => {
          world.registrar.parties = [];
        },
        'invalid_input rpId',
      ],
      [
        'an answer that is no certificate',
        {},
        () => {
          world.registrar.accessCertificate = 'nonsense';
        },
        'unavailable',
      ],
      [
        'a certificate of another key',
        {},
        async () => {
          world.registrar.accessCertificate = writePemCertificates([await certificateFor('signing')]);
        },
        'unavailable',
      ],
      [
        'a certificate that has ended',
        {},
        async () => {
          const ended = await certificateFor('access', '2025-06-01T00:00:00Z');
          world.registrar.accessCertificate = writePemCertificates([ended]);
        },
        'unavailable',
      ],
      [
        'a key chain whose authority is trusted by a presentation',
        {},
        () =>
          world.write((own) => {
            const now = world.clock.now();
            const body = { id: 'age', dcql_query: query({ id: 'pid' }), trustAnchors: [{ keyChainId: 'access' }] };
            const age = PresentationConfigurationBody.parse(body);
            return own.presentationConfigurations.put({ ...age, createdAt: now, updatedAt: now });
          }),
        'conflict',
      ],
      [
        'a key chain that got another key meanwhile',
        {},
        () => {
          const { issueAccessCertificate } = world.registrar;
          world.registrar.issueAccessCertificate = async (...wanted) => {
            await world.write(async ({ keyChains }) => {
              const { active } = await keyChains.get('signing');
              await keyChains.put({ ...(await keyChains.get('access')), active });
            });
            return issueAccessCertificate.apply(world.registrar, wanted);
          };
        },
        'conflict',
      ],
    ];
    for (const [what, wanted, prepare, end] of refusals) {
      it(`is rejected for ${what}: ${end}`, async () => {
        await prepare();
        const { certificates } = (await chainOf()).active;
        expect(await endOf(order(wanted))).to.equal(end);
        const after = await chainOf();
        if (!what.includes('meanwhile')) expect(after.active.certificates).to.deep.equal(certificates);
      });
    }

    for (const [fault, end] of FAULTS) {
      it(`is rejected when the registrar fails with ${fault}: ${end}`, async () => {
        fails(fault);
        const shown = end === 'unavailable' ? end : `${end} keyChainId`;
        expect(await endOf(order())).to.equal(shown);
      });
    }

    it('is rejected without a registrar: conflict', async () => {
      await world.write((own) => own.registrarConfiguration.remove('default'));
      expect(await endOf(order())).to.equal('conflict');
    });
  });

  describe('a registration certificate', () => {
    const certificate = (payload: object = {}, by = signer) => {
      const iat = Math.floor(world.clock.now().getTime() / 1000);
      const header = { alg: 'ES256', typ: 'rc-wrp+jwt', x5c: [by.certificate] };
      const body = { sub: 'VATDE-1', iat, exp: iat + 3600, credentials: [CREDENTIAL], ...payload };
      return makeJwt(by, header, body);
    };
    const order = (wanted: object, allowed: string[] | null = null) => {
      const statusVerifier = { verify: async () => {} };
      const registrationCertificateVerifier = new RegistrationCertificateVerifier({ ...world, statusVerifier });
      const ports = { ...world, registrationCertificateVerifier };
      return new ObtainRegistrationCertificate(ports).execute(caller(allowed), RegistrationCertificateOrder.parse(wanted));
    };
    const issues = (payload: object = {}, revoked = false) => {
      world.registrar.certificate = { id: 'known', jwt: certificate(payload), revoked, relyingPartyId: 'party' };
    };
    const forAge = { body: {}, presentationConfigurationId: 'age' };

    beforeEach(async () => {
      await hasLogin();
      issues();
      const now = world.clock.now();
      const age = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query({ id: 'pid' }) });
      await world.store.prepare('a presentation of the age', () =>
        world.write((own) => own.presentationConfigurations.put({ ...age, createdAt: now, updatedAt: now })),
      );
    });

    it('is issued for the first relying party', async () => {
      const obtained = await order(forAge);
      expect(obtained).to.include({ id: 'known', relyingPartyId: 'party', subject: 'VATDE-1' });
      expect(obtained.jwt).to.equal(world.registrar.certificate?.jwt);
      expect(world.registrar.asked).to.deep.equal(['parties', 'registration party']);
    });

    it('is fetched by its id', async () => {
      expect(await order({ id: 'known' })).to.include({ id: 'known' });
      expect(world.registrar.asked).to.deep.equal(['find known']);
    });

    it('is checked when it is external, also without a registrar', async () => {
      await world.write((own) => own.registrarConfiguration.remove('default'));
      const obtained = await order({ jwt: certificate(), presentationConfigurationId: 'age' });
      expect(obtained).to.include({ subject: 'VATDE-1' }).and.not.have.property('id');
      expect(world.registrar.asked).to.deep.equal([]);
    });

    it('must have a signer under the anchors of the tenant', async () => {
      await hasLogin({ registrationCertificateAnchors: [writePemCertificates([root.certificate])] });
      expect(await order({ id: 'known' })).to.include({ id: 'known' });
      const other = await certify({ name: 'Somebody' });
      expect(await endOf(order({ jwt: certificate({}, other) }))).to.equal('invalid_input jwt');
    });

    const other = { format: 'dc+sd-jwt', meta: { vct_values: ['urn:other:1'] }, claim: [{ path: ['x'] }] };
    const refusals: [string, object, () => unknown, string][] = [
      ['an unknown configuration', { ...forAge, presentationConfigurationId: 'x' }, () => {}, 'invalid_input presentationConfigurationId'],
      ['an unknown id', { id: 'unknown' }, () => {}, 'invalid_input id'],
      ['one that is revoked', { id: 'known' }, () => issues({}, true), 'invalid_input id'],
      ['a new one that is revoked', forAge, () => issues({}, true), 'invalid_input'],
      ['one that does not cover the query', forAge, () => issues({ credentials: [other] }), 'invalid_input'],
      ['one that has ended', { id: 'known' }, () => issues({ exp: 1 }), 'invalid_input'],
      ['nothing that it is for', { body: {} }, () => {}, 'invalid_input body.credentials'],
      ['no purpose', forAge, () => hasLogin({ registrationCertificateDefaults: null }), 'invalid_input body.privacy_policy'],
      [
        'an account without party',
        forAge,
        () => {
          world.registrar.parties = [];
        },
        'invalid_input',
      ],
      ['a text that is not a certificate', { jwt: 'a.b.c' }, () => {}, 'invalid_input jwt'],
    ];
    for (const [what, wanted, prepare, end] of refusals) {
      it(`is rejected for ${what}: ${end}`, async () => {
        await prepare();
        expect(await endOf(order(wanted))).to.equal(end);
      });
    }

    for (const [fault, end] of FAULTS) {
      it(`is rejected when the registrar fails with ${fault}: ${end}`, async () => {
        fails(fault);
        for (const wanted of [forAge, { id: 'known' }]) expect(await endOf(order(wanted))).to.equal(end);
      });
    }

    it('is rejected without a registrar, unless it is in the request: conflict', async () => {
      await world.write((own) => own.registrarConfiguration.remove('default'));
      expect(await endOf(order(forAge))).to.equal('conflict');
      expect(await endOf(order({ id: 'known' }))).to.equal('conflict');
    });

    it('is rejected for a configuration that the client may not use: not_found', async () => {
      expect(await endOf(order(forAge, ['other']))).to.equal('not_found');
    });
  });
});
