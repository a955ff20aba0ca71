import { expect } from 'chai';
import sinon from 'sinon';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { RenewTrustLists } from '../../application/trust-lists/renew-trust-lists.ts';
import { pinSigners, verifyTrustList } from '../../application/trust-lists/verify-trust-list.ts';
import { findLoteProblems } from '../support/lote-schema.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const MINUTE = 60 * 1000;
const DAYS = 24 * 60 * 60 * 1000;
const readers = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };

/** What lists of European types have to say. */
const EXPLICIT = {
  SchemeOperatorAddress: {
    SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Main Street 1', Country: 'DE' }],
    SchemeOperatorElectronicAddress: [{ lang: 'en', uriValue: 'mailto:lists@ministry.example' }],
  },
  SchemeName: [{ lang: 'en', value: 'DE:PIDs' }],
  SchemeInformationURI: [{ lang: 'en', uriValue: 'https://ministry.example/scheme' }],
  PolicyOrLegalNotice: [{ LoTELegalNotice: 'As published.' }],
};
const headerOf = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString());
const payloadOf = (jwt: string) => JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
const numberOf = (jwt: string) => payloadOf(jwt).LoTE.ListAndSchemeInformation.LoTESequenceNumber;

describe('Trust lists through HTTP', () => {
  let service: TestService;
  let tenant: { id: string; token: string };
  let university: CertifiedKey;
  let registry: CertifiedKey;

  before(async () => {
    service = await startTestService();
    tenant = await createTenant(service, 'acme');
    university = await certify({ name: 'University', ca: true });
    registry = await certify({ name: 'Registry' });
  });
  after(() => service.close());

  const callAs = (token: string, method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const call = (method: string, path: string, json?: unknown) => callAs(tenant.token, method, path, json);
  const ok = async (method: string, path: string, json?: unknown) => {
    const answer = await call(method, path, json);
    expect(answer.status, answer.text).to.equal(method === 'POST' ? 201 : 200);
    return answer.body;
  };
  const published = (id: string, headers: Record<string, string> = {}, of = 'acme') =>
    service.call('GET', `/${of}/trust-list/${id}`, { headers });
  const internal = (changes: object = {}) => ({
    type: 'internal',
    issuerKeyChainId: 'signing',
    revocationKeyChainId: 'status-list',
    info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
    ...changes,
  });
  const external = (changes: object = {}) => ({
    type: 'external',
    issuerCertPem: pem(university),
    revocationCertPem: pem(registry),
    info: { name: 'University', uri: 'https://uni.example', country: 'FR', streetAddress: 'Rue 1' },
    ...changes,
  });
  const rootOf = async (keyChain: string): Promise<string> => (await ok('GET', `/key-chain/${keyChain}`)).rootCertificate;
  /** What a reader makes of a list who knows the CA of its signer. */
  const read = async (jwt: string, keyChain = 'trust-list') =>
    verifyTrustList(readers, jwt, pinSigners([await rootOf(keyChain)]).anchors, new Date()).list;
  /** Runs `work` so much later by the clock of the service. */
  const later = async <T>(milliseconds: number, work: () => Promise<T>): Promise<T> => {
    const clock = sinon.useFakeTimers({ now: Date.now() + milliseconds, toFake: ['Date'] });
    try {
      return await work();
    } finally {
      clock.restore();
    }
  };
  const renew = () => service.service.container.get(RenewTrustLists).execute(new Date(), 100);

  describe('an entity', () => {
    const ADDRESS = { streetAddress: 'Rue 1', country: 'FR' };
    const postal = (made: { data: { LoTE: { TrustedEntitiesList: object[] } } }) =>
      made.data.LoTE.TrustedEntitiesList.map(
        // biome-ignore lint/suspicious/noExplicitAny: the test looks into it
        (entity: any) => entity.TrustedEntityInformation.TEAddress.TEPostalAddress,
      );

    it('has a street and a country: its own, otherwise those of the tenant, otherwise those of its certificate', async () => {
      const own = await createTenant(service, 'addressed', {
        country: 'DE',
        address: { streetAddress: 'Hauptstraße 1', locality: 'Berlin', postalCode: '10115' },
        contact: 'mailto:trust@addressed.example',
      });
      const listed = await certify({ name: 'Lister, C=AT, 2.5.4.9=Ring 1', ca: true });
      const answer = await callAs(own.token, 'POST', '/trust-list', {
        entities: [
          internal({ info: { name: 'Ours' } }),
          external({ info: { name: 'Named', ...ADDRESS } }),
          external({ issuerCertPem: pem(listed), info: { name: 'Certified' } }),
        ],
      });
      expect(answer.status, answer.text).to.equal(201);
      expect(postal(answer.body)).to.deep.equal([
        [{ lang: 'en', StreetAddress: 'Hauptstraße 1', Locality: 'Berlin', PostalCode: '10115', Country: 'DE' }],
        [{ lang: 'en', StreetAddress: 'Rue 1', Country: 'FR' }],
        [{ lang: 'en', StreetAddress: 'Ring 1', Country: 'AT' }],
      ]);
      const [ours] = answer.body.data.LoTE.TrustedEntitiesList;
      expect(ours.TrustedEntityInformation.TEAddress.TEElectronicAddress).to.deep.equal([
        { lang: 'en', uriValue: 'mailto:trust@addressed.example' },
      ]);
    });

    describe('without a street or a country', () => {
      const ours = { type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Ours', country: 'DE' } };
      const theirs = () => external({ info: { name: 'Theirs' } });
      const MISSING = ['entities.0.info.streetAddress', 'entities.1.info.streetAddress', 'entities.1.info.country'];
      const PROVIDERS = 'http://uri.etsi.org/19602/LoTEType/EUPubEAAProvidersList';
      let bare: string;
      const bareOf = async () => {
        bare ??= (await createTenant(service, 'bare')).token;
        return bare;
      };
      const membersOf = (warnings: { member: string }[]) =>
        warnings.map(({ member }) => member).filter((member) => member.startsWith('entities.'));

      for (const [method, prepare] of [
        ['POST', undefined],
        ['PUT', { entities: [] }],
        ['PATCH', { entities: [] }],
      ] as const) {
        it(`${method} publishes the known data and warns about each missing property`, async () => {
          const token = await bareOf();
          const id = `bare-${method.toLowerCase()}`;
          const json = { ...(prepare === undefined && { id }), entities: [ours, theirs()] };
          if (prepare !== undefined) await callAs(token, 'POST', '/trust-list', { id, ...prepare });
          const path = prepare === undefined ? '/trust-list' : `/trust-list/${id}`;
          const answer = await callAs(token, method, path, json);
          expect(answer.status, answer.text).to.equal(method === 'POST' ? 201 : 200);
          expect(membersOf(answer.body.warnings)).to.deep.equal(MISSING);
          const warning = answer.body.warnings.find(({ member }: { member: string }) => member === MISSING[2]);
          expect(warning.message).to.include('country of the entity "Theirs"');
          const { text } = await published(id, {}, 'bare');
          const [first, second] = payloadOf(text).LoTE.TrustedEntitiesList;
          expect(first.TrustedEntityInformation.TEAddress.TEPostalAddress).to.deep.equal([{ lang: 'en', Country: 'DE' }]);
          expect(second.TrustedEntityInformation.TEAddress).to.have.all.keys('TEElectronicAddress');
        });
      }

      it('is rejected in a list of a European type', async () => {
        const token = await bareOf();
        const page = [{ lang: 'en', uriValue: 'https://acme.example' }];
        const ListAndSchemeInformation = {
          LoTEType: PROVIDERS,
          SchemeOperatorName: [{ lang: 'en', value: 'Operator' }],
          SchemeOperatorAddress: {
            SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Weg 1', Country: 'DE' }],
            SchemeOperatorElectronicAddress: page,
          },
          SchemeName: [{ lang: 'en', value: 'DE:Bodies' }],
          SchemeInformationURI: page,
          PolicyOrLegalNotice: [{ LoTEPolicy: { lang: 'en', uriValue: 'https://acme.example' } }],
        };
        const operator = { usages: ['trustList'], organization: 'Operator', country: 'DE', id: 'operator' };
        expect((await callAs(token, 'POST', '/key-chain', operator)).status).to.equal(201);
        const json = {
          ...{ id: 'european', keyChainId: 'operator', data: { LoTE: { ListAndSchemeInformation } } },
          entities: [ours, theirs()],
        };
        const answer = await callAs(token, 'POST', '/trust-list', json);
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.errors.map(({ path }: { path: string }) => path)).to.deep.equal(MISSING);
        expect((await callAs(token, 'GET', '/trust-list/european')).status).to.equal(404);
      });

      it('is rejected with the profile eu, which cannot be set with such a list', async () => {
        const token = await bareOf();
        await callAs(token, 'POST', '/trust-list', { id: 'in-the-way', entities: [theirs()] });
        const root = await service.rootToken();
        const taken = await callAs(root, 'PATCH', '/tenant/bare', { profile: 'eu' });
        expect(taken.status, taken.text).to.equal(409);
        const paths = taken.body.errors.map(({ path }: { path: string }) => path);
        expect(paths).to.include('trust-list/in-the-way.entities.0.info.country');
        const { token: european } = await createTenant(service, 'european', { profile: 'eu' });
        const answer = await callAs(european, 'POST', '/trust-list', { id: 'bare', entities: [theirs()] });
        expect(answer.status, answer.text).to.equal(400);
        expect(answer.body.errors[0].path).to.equal('entities.0.info.streetAddress');
        expect(answer.body.errors[0].message).to.include('profile eu');
      });
    });
  });

  describe('a list', () => {
    it('is composed, signed, returned and published', async () => {
      const json = { id: 'both', description: 'All', entities: [internal(), external()] };
      const { warnings, ...made } = await ok('POST', '/trust-list', json);
      expect(warnings).to.deep.equal([]);
      expect(made).to.have.all.keys(
        ...['id', 'description', 'tenantId', 'tenant', 'keyChainId', 'certId', 'cert', 'data', 'entityConfig'],
        ...['sequenceNumber', 'jwt', 'createdAt', 'updatedAt'],
      );
      expect(made).to.deep.include({
        id: 'both',
        description: 'All',
        tenantId: 'acme',
        keyChainId: 'trust-list',
        certId: 'trust-list',
        sequenceNumber: 1,
      });
      expect(made.tenant).to.include({ id: 'acme', name: 'Tenant acme', status: 'active' });
      expect(made.cert.id).to.equal('trust-list');
      expect(made.data).to.deep.equal(payloadOf(made.jwt));
      const { LoTE } = made.data;
      expect(LoTE.ListAndSchemeInformation).to.have.all.keys(
        ...['LoTEVersionIdentifier', 'LoTESequenceNumber', 'SchemeOperatorName', 'ListIssueDateTime'],
        'NextUpdate',
      );
      const [own] = LoTE.TrustedEntitiesList;
      expect(own.TrustedEntityInformation.TEInformationURI).to.deep.equal([{ lang: 'en', uriValue: `${service.address}/acme` }]);
      expect(made.entityConfig[0]).to.include({ issuerKeyChainId: 'signing', issuerCertId: 'signing' });
      expect(made.entityConfig[1]).to.deep.equal(external());
      expect(await ok('GET', '/trust-list/both')).to.deep.equal(made);
      expect(await ok('GET', '/trust-list')).to.deep.include(made);
      expect((await published('both')).text).to.equal(made.jwt);
    });

    it('is accepted by the reader of this service under the CA of its signer and makes its entities trusted', async () => {
      const { jwt } = await ok('GET', '/trust-list/both');
      const header = headerOf(jwt);
      expect(header).to.include({ alg: 'ES256', typ: 'trustlist+jwt' });
      expect(header.iat).to.be.closeTo(Date.now() / 1000, 60);
      expect(header.x5c).to.have.length(1);
      const list = await read(jwt);
      expect(list.sequenceNumber).to.equal(1);
      const der = (text: string) => text.replaceAll(/-----[^-]+-----|\s/g, '');
      const [signing, status] = [await rootOf('signing'), await rootOf('status-list')];
      expect(
        list.entities.map(({ name, country, services }) => [
          name,
          country,
          services.map(({ type, certificates }) => [type?.split('/SvcType/')[1], certificates]),
        ]),
      ).to.deep.equal([
        [
          'Acme',
          'DE',
          [
            ['EAA/Issuance', [der(signing)]],
            ['EAA/Revocation', [der(status)]],
          ],
        ],
        [
          'University',
          'FR',
          [
            ['EAA/Issuance', [university.certificate]],
            ['EAA/Revocation', [registry.certificate]],
          ],
        ],
      ]);
      const other = await certify({ name: 'Other', ca: true });
      expect(() => verifyTrustList(readers, jwt, pinSigners([pem(other)]).anchors, new Date())).to.throw(/untrusted_signer/);
    });

    it('contains the data of its operator and has services of its kind', async () => {
      const scheme = {
        LoTEType: 'http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList',
        SchemeOperatorName: [{ lang: 'en', value: 'Ministry' }],
        ...EXPLICIT,
      };
      const data = { LoTE: { ListAndSchemeInformation: scheme } };
      const ministry = { organization: 'Ministry', country: 'DE' };
      await ok('POST', '/key-chain', { id: 'ministry', usageType: 'trustList', ...ministry });
      const json = { id: 'pids', keyChainId: 'ministry', entities: [internal()], data };
      const made = await ok('POST', '/trust-list', json);
      expectTerritoryWarning(made.warnings);
      expect(findLoteProblems(made.data)).to.deep.equal([]);
      expect(made.data.LoTE.ListAndSchemeInformation).to.deep.include({ ...scheme, SchemeTerritory: 'EU' });
      const [{ services = [] } = {}] = (await read(made.jwt, 'ministry')).entities;
      expect(services.map(({ type }) => type?.split('/SvcType/')[1])).to.deep.equal(['PID/Issuance', 'PID/Revocation']);
    });

    it('of a European type contains all required data, or is rejected with everything that is missing', async () => {
      const made = async (type: string, scheme: object = {}, more: object = {}) => {
        const LoTEType = `http://uri.etsi.org/19602/LoTEType/${type}`;
        const data = { LoTE: { ListAndSchemeInformation: { LoTEType, ...scheme } } };
        return call('POST', '/trust-list', { entities: [internal()], data, ...more });
      };
      const bare = await made('EUPIDProvidersList');
      expect(bare.status).to.equal(400);
      const members = ['SchemeOperatorAddress', 'SchemeName', 'SchemeInformationURI', 'PolicyOrLegalNotice'];
      for (const member of members) expect(bare.body.detail).to.include(member);
      expect(bare.body.errors.map(({ path }: { path: string }) => path.split('.').at(-1))).to.deep.equal(members);
      const kept = await made('EUPIDProvidersList', { ...EXPLICIT, HistoricalInformationPeriod: 65_535 });
      expect(kept.body.errors?.[0].path).to.match(/HistoricalInformationPeriod$/);
      const foreign = await made('EUPIDProvidersList', { ...EXPLICIT, SchemeOperatorName: [{ lang: 'en', value: 'Somebody else' }] });
      expect(foreign.body.errors?.map(({ path }: { path: string }) => path)).to.deep.equal(['keyChainId']);
      expect(foreign.body.detail).to.match(/names the organization Tenant acme, the list Somebody else/);
      const nowhere = await made('EUPIDProvidersList', EXPLICIT);
      expect(nowhere.body.detail, 'the signer of a tenant that says no country').to.match(/names no country/);
    });

    it('of a European type contains the data of the tenant', async () => {
      const { token } = await createTenant(service, 'office', {
        organization: 'Office of Lists',
        country: 'DE',
        address: { streetAddress: 'Main Street 1', locality: 'Berlin' },
        contact: 'mailto:lists@office.example',
      });
      const { SchemeOperatorAddress: _stated, ...rest } = EXPLICIT;
      const LoTEType = 'http://trust.ec.europa.eu/lists/mDL/mDLProvidersListType';
      const data = { LoTE: { ListAndSchemeInformation: { LoTEType, ...rest } } };
      const entities = [internal({ info: { name: 'Office of Lists' } })];
      const made = await callAs(token, 'POST', '/trust-list', { entities, data });
      expect(made.status, made.text).to.equal(201);
      expectTerritoryWarning(made.body.warnings);
      expect(findLoteProblems(made.body.data)).to.deep.equal([]);
      const { ListAndSchemeInformation: scheme, TrustedEntitiesList: listed } = made.body.data.LoTE;
      expect(scheme).to.deep.include({
        SchemeOperatorName: [{ lang: 'en', value: 'Office of Lists' }],
        SchemeOperatorAddress: {
          SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Main Street 1', Locality: 'Berlin', Country: 'DE' }],
          SchemeOperatorElectronicAddress: [{ lang: 'en', uriValue: 'mailto:lists@office.example' }],
        },
        StatusDeterminationApproach: 'http://trust.ec.europa.eu/lists/mDL/mDLProvidersListStatusDetn',
      });
      const [{ ServiceInformation: issuance }] = listed[0].TrustedEntityServices;
      expect(issuance.ServiceTypeIdentifier).to.equal('http://trust.ec.europa.eu/lists/mDL/SvcType/Issuance');
    });

    it('of public bodies contains the status of each and its date', async () => {
      const LoTEType = 'http://uri.etsi.org/19602/LoTEType/EUPubEAAProvidersList';
      const scheme = { LoTEType, SchemeOperatorName: [{ lang: 'en', value: 'Ministry' }], ...EXPLICIT };
      const data = { LoTE: { ListAndSchemeInformation: scheme } };
      type Listed = { TrustedEntityServices: { ServiceInformation: Record<string, string> }[] };
      const standing = (made: { data: { LoTE: { TrustedEntitiesList: Listed[] } } }) =>
        made.data.LoTE.TrustedEntitiesList.map(({ TrustedEntityServices: [service] }) => [
          service?.ServiceInformation['ServiceStatus']?.split('/SvcStatus/')[1],
          service?.ServiceInformation['StatusStartingTime'] ?? '',
        ]);
      const since = '2026-01-01T00:00:00Z';
      const entities = [internal(), external({ statusStartingTime: since })];
      const json = { id: 'bodies', keyChainId: 'ministry', entities, data };
      const made = await ok('POST', '/trust-list', json);
      expect(findLoteProblems(made.data)).to.deep.equal([]);
      expect(made.data.LoTE.ListAndSchemeInformation.HistoricalInformationPeriod).to.equal(65_535);
      const [[ours, start = ''] = [], theirs] = standing(made);
      expect([ours, theirs]).to.deep.equal(['notified', ['notified', since]]);
      expect(Date.parse(start)).to.be.closeTo(Date.now(), 5_000);
      const [, { statusStartingTime: _time, ...other }] = made.entityConfig;
      const withdrawn = await later(MINUTE, () =>
        ok('PATCH', '/trust-list/bodies', { entities: [internal(), { ...other, status: 'withdrawn' }] }),
      );
      const [[kept, keptSince] = [], [gone, goneSince = ''] = []] = standing(withdrawn);
      expect([kept, keptSince], 'a status that stays has its time').to.deep.equal(['notified', start]);
      expect(gone).to.equal('withdrawn');
      expect(Date.parse(goneSince)).to.be.closeTo(Date.now() + MINUTE, 10_000);
      const wrong = await call('POST', '/trust-list', { entities: [internal({ status: 'withdrawn' })] });
      expect(wrong.body.errors?.[0].path).to.equal('entities.0.status');
    });

    const expectTerritoryWarning = (warnings: readonly { readonly message: string }[]) => {
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.include({ rule: 'TS 119 602 section 6.8', member: 'keyChainId' });
      expect(warnings[0]?.message).to.match(/names DE, the list EU as its SchemeTerritory/);
    };

    it('has no warning when the certificate of its signer contains the SchemeTerritory EU', async () => {
      const scheme = {
        LoTEType: 'http://uri.etsi.org/19602/LoTEType/EUPIDProvidersList',
        SchemeOperatorName: [{ lang: 'en', value: 'Agency' }],
        ...EXPLICIT,
      };
      const data = { LoTE: { ListAndSchemeInformation: scheme } };
      await ok('POST', '/key-chain', { id: 'agency', usageType: 'trustList', organization: 'Agency', country: 'EU' });
      const made = await ok('POST', '/trust-list', { keyChainId: 'agency', entities: [internal()], data });
      expect(made.warnings).to.deep.equal([]);
    });

    it('signed with another name than its operator is published with a warning', async () => {
      const scheme = { SchemeOperatorName: [{ lang: 'en', value: 'Somebody else' }] };
      const data = { LoTE: { ListAndSchemeInformation: scheme } };
      const { warnings } = await ok('POST', '/trust-list', { entities: [], data });
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.include({ rule: 'TS 119 602 section 6.8', member: 'keyChainId' });
    });

    it('may be empty, and has an unpredictable id unless it gets one', async () => {
      const made = await ok('POST', '/trust-list', { entities: [] });
      expect(made.id).to.match(/^[\w-]{22}$/);
      expect(made.data.LoTE).not.to.have.property('TrustedEntitiesList');
      expect((await read(made.jwt)).entities).to.deep.equal([]);
    });

    it('is signed by the chosen key chain, by either of its names', async () => {
      await ok('POST', '/key-chain', { id: 'lists-2', usageType: 'trustList' });
      const entity = { type: 'internal', issuerCertId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } };
      for (const reference of [{ certId: 'lists-2' }, { keyChainId: 'lists-2' }]) {
        const made = await ok('POST', '/trust-list', { ...reference, entities: [entity] });
        expect(made).to.include({ certId: 'lists-2', keyChainId: 'lists-2' });
        expect(made.entityConfig[0]).to.include({ issuerKeyChainId: 'signing', issuerCertId: 'signing' });
        expect((await read(made.jwt, 'lists-2')).entities).to.have.length(1);
        await ok('DELETE', `/trust-list/${made.id}`);
      }
    });
  });

  describe('a write', () => {
    const refused = (answer: Answer, status: number, code: string) =>
      expect([answer.status, answer.body?.code], answer.text).to.deep.equal([status, code]);

    it('creates a release with the next number and keeps the previous ones', async () => {
      const first = await ok('POST', '/trust-list', { id: 'versions', entities: [internal()] });
      expect(await ok('GET', '/trust-list/versions/versions')).to.deep.equal([]);
      const second = await ok('PUT', '/trust-list/versions', { id: 'versions', entities: [external()] });
      const third = await ok('PATCH', '/trust-list/versions', { description: 'Third' });
      expect([first, second, third].map(({ sequenceNumber }) => sequenceNumber)).to.deep.equal([1, 2, 3]);
      expect([first, second, third].map(({ jwt }) => numberOf(jwt))).to.deep.equal([1, 2, 3]);
      expect(third.createdAt).to.equal(first.createdAt);
      expect(third.entityConfig).to.deep.equal([external()]);
      const versions = await ok('GET', '/trust-list/versions/versions');
      const shape = (list: Record<string, unknown>, id: string) => ({
        id,
        trustListId: 'versions',
        trustList: { id: 'versions', description: list['description'] },
        tenantId: 'acme',
        sequenceNumber: list['sequenceNumber'],
        data: list['data'],
        entityConfig: list['entityConfig'],
        jwt: list['jwt'],
        createdAt: list['updatedAt'],
      });
      const [newer, older] = versions;
      expect(versions).to.deep.equal([shape(second, newer.id), shape(first, older.id)]);
      expect(await ok('GET', `/trust-list/versions/versions/${older.id}`)).to.deep.equal(older);
      for (const path of ['versions/versions/none', `both/versions/${older.id}`, 'none/versions']) {
        refused(await call('GET', `/trust-list/${path}`), 404, 'not_found');
      }
    });

    it('returns previous releases page by page', async () => {
      const titled = (name: string, entities: object[] = []) => ({ description: name, entities });
      await ok('POST', '/trust-list', { id: 'paged', ...titled('1') });
      for (const name of ['2', '3', '4', '5', '6']) await ok('PUT', '/trust-list/paged', titled(name));
      const names = (answer: Answer) => answer.body.map(({ trustList }: { trustList: { description: string } }) => trustList.description);
      const follow = async (answer: Answer) => {
        const [, address = ''] = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '') ?? [];
        expect(address).to.include(`${service.address}/trust-list/paged/versions?`);
        return call('GET', address);
      };
      const first = await call('GET', '/trust-list/paged/versions?limit=3');
      expect([first.status, names(first)]).to.deep.equal([200, ['5', '4', '3']]);
      const last = await follow(first);
      expect([names(last), last.headers.get('link')]).to.deep.equal([['2', '1'], null]);
      const exact = await call('GET', '/trust-list/paged/versions?limit=5');
      expect([names(exact), exact.headers.get('link')]).to.deep.equal([['5', '4', '3', '2', '1'], null]);
      for (const query of ['limit=0', 'limit=501', 'limit=x', 'cursor=x', 'cursor=-1', 'cursor=99999999999']) {
        refused(await call('GET', `/trust-list/paged/versions?${query}`), 400, 'invalid_input');
      }

      const large = pem(await certify({ name: 'x'.repeat(5_000) }));
      const heavy = Array.from({ length: 30 }, (_, index) =>
        external({ issuerCertPem: large, info: { name: `University ${index}`, country: 'DE', streetAddress: 'Weg 1' } }),
      );
      await ok('PUT', '/trust-list/paged', titled('heavy', heavy));
      for (let again = 0; again < 11; again++) await ok('PATCH', '/trust-list/paged', {});
      let page = await call('GET', '/trust-list/paged/versions');
      const all = [...names(page)];
      let pages = 1;
      for (; page.headers.has('link'); pages++) {
        expect(page.text.length).to.be.within(8 * 1024 * 1024, 11 * 1024 * 1024);
        page = await follow(page);
        all.push(...names(page));
      }
      expect(pages).to.be.greaterThan(1);
      expect(all).to.deep.equal([...Array(11).fill('heavy'), '6', '5', '4', '3', '2', '1']);
    });

    it('replaces properties, resets them by null and signs again without any property', async () => {
      const data = { LoTE: { ListAndSchemeInformation: { SchemeTerritory: 'DE' } } };
      const json = { id: 'patched', description: 'x', certId: 'lists-2', entities: [internal()], data };
      const made = await ok('POST', '/trust-list', json);
      const again = await ok('PATCH', '/trust-list/patched', {});
      const kept = ['description', 'certId', 'entityConfig'];
      for (const member of kept) expect(again[member], member).to.deep.equal(made[member]);
      expect([again.sequenceNumber, again.jwt === made.jwt]).to.deep.equal([2, false]);
      const reset = { description: null, certId: null, data: null };
      const plain = await ok('PATCH', '/trust-list/patched', reset);
      expect(plain).to.include({ description: null, certId: 'trust-list' });
      expect(plain.data.LoTE.ListAndSchemeInformation).not.to.have.property('SchemeTerritory');
      expect(await ok('GET', '/trust-list/patched/export')).to.have.all.keys('id', 'certId', 'keyChainId', 'entities');
      const replaced = await ok('PUT', '/trust-list/patched', { entities: [] });
      expect(replaced).to.deep.include({ entityConfig: [], sequenceNumber: 4 });
      await ok('DELETE', '/trust-list/patched');
    });

    it('is rejected without a change when an entity cannot be listed or the list cannot be signed', async () => {
      const own = (changes: object) => ({ entities: [internal(changes)] });
      const other = (changes: object) => ({ entities: [external(changes)] });
      const scheme = (members: object) => ({ entities: [], data: { LoTE: { ListAndSchemeInformation: members } } });
      const twice = (changes: object) => ({ entities: [external(), external(changes)] });
      const over = await certify({ name: 'Over', until: '2025-06-01T00:00:00Z' });
      const endless = await certify({ name: 'Endless', validity: { notAfter: '271399000000Z' } });
      const rows: readonly [object, string][] = [
        [{}, 'entities'],
        [{ entities: {} }, 'entities'],
        [{ entities: [], unknown: 1 }, 'unknown'],
        [{ entities: [], entityConfig: [internal()] }, 'entityConfig'],
        [{ entities: [], certId: 'none' }, 'certId'],
        [{ entities: [], certId: 'signing' }, 'certId'],
        [{ entities: [], certId: 'trust-list', keyChainId: 'lists-2' }, 'certId'],
        [own({ issuerKeyChainId: 'none' }), 'entities.0.issuerKeyChainId'],
        [own({ revocationKeyChainId: 'none' }), 'entities.0.revocationKeyChainId'],
        [own({ issuerCertId: 'status-list' }), 'entities.0.issuerCertId'],
        [own({ revocationCertId: 'signing' }), 'entities.0.revocationCertId'],
        [own({ issuerKeyChainId: 'access' }), 'entities.0.issuerKeyChainId'],
        [own({ issuerKeyChainId: 'status-list' }), 'entities.0.issuerKeyChainId'],
        [own({ issuerKeyChainId: 'trust-list' }), 'entities.0.issuerKeyChainId'],
        [own({ revocationKeyChainId: 'access' }), 'entities.0.revocationKeyChainId'],
        [own({ issuerKeyChainId: undefined }), 'entities.0.issuerKeyChainId'],
        [own({ type: 'other' }), 'entities.0.type'],
        [own({ info: { name: 'Acme', vat: 'x' } }), 'entities.0.info.vat'],
        [own({ info: { country: 'DE' } }), 'entities.0.info.name'],
        [own({ issuerCertPem: pem(registry) }), 'entities.0.issuerCertPem'],
        [other({ issuerCertPem: 'none' }), 'entities.0.issuerCertPem'],
        [other({ issuerCertPem: pem(registry) + pem(university) }), 'entities.0.issuerCertPem'],
        [other({ revocationCertPem: pem(over) }), 'entities.0.revocationCertPem'],
        [other({ issuerCertPem: pem(endless) }), 'entities.0.issuerCertPem'],
        [other({ revocationCertPem: pem(endless) }), 'entities.0.revocationCertPem'],
        [twice({ issuerCertPem: pem(registry) }), 'entities.1.info.name'],
        [twice({ revocationCertPem: pem(university) }), 'entities.1.info.name'],
        [twice({ revocationCertPem: undefined }), 'entities.1.info.name'],
        [{ entities: [internal(), external({ info: internal().info })] }, 'entities.1.info.name'],
        [scheme({ LoTESequenceNumber: 99 }), 'data.LoTE.ListAndSchemeInformation'],
        [scheme({ NextUpdate: '2099-01-01T00:00:00Z' }), 'data.LoTE.ListAndSchemeInformation'],
        [scheme({ SchemeTerritory: 'x' }), 'data.LoTE.ListAndSchemeInformation.SchemeTerritory'],
        [{ entities: [], data: { LoTE: { TrustedEntitiesList: [] } } }, 'data.LoTE'],
        [{ entities: [], data: { TrustedEntitiesList: [] } }, 'data'],
      ];
      const before = await ok('GET', '/trust-list');
      for (const [json, path] of rows) {
        const requests = [
          ['POST', '/trust-list', { id: 'refused', ...json }],
          ['PUT', '/trust-list/both', json],
        ] as const;
        for (const [method, address, body] of requests) {
          const answer = await call(method, address, body);
          expect([answer.status, answer.body.code], JSON.stringify(json)).to.deep.equal([400, 'invalid_input']);
          expect(answer.body.errors[0].path, answer.text).to.equal(path);
        }
      }
      refused(await call('PATCH', '/trust-list/both', { id: 'other' }), 400, 'invalid_input');
      refused(await call('PUT', '/trust-list/both', { id: 'other', entities: [] }), 400, 'invalid_input');
      refused(await call('POST', '/trust-list', { id: 'both', entities: [] }), 409, 'conflict');
      refused(await call('PUT', '/trust-list/none', { entities: [] }), 404, 'not_found');
      refused(await call('PATCH', '/trust-list/none', {}), 404, 'not_found');
      refused(await call('DELETE', '/trust-list/none'), 404, 'not_found');
      const large = { entities: [external({ issuerCertPem: 'x'.repeat(600_000) })] };
      refused(await call('POST', '/trust-list', large), 413, 'too_large');
      expect(await ok('GET', '/trust-list')).to.deep.equal(before);
      expect((await published('refused')).status).to.equal(404);
    });

    it('accepts entities with the same name that can be distinguished or list the same certificates', async () => {
      const names = [{ country: 'BE' }, { lang: 'de' }, { name: 'Other' }].map((changes) =>
        external({ issuerCertPem: pem(registry), info: { ...external().info, ...changes } }),
      );
      const made = await ok('POST', '/trust-list', { entities: [external(), external(), ...names] });
      expect((await read(made.jwt)).entities.map(({ id }) => id)).to.have.length(5);
      expect(new Set((await read(made.jwt)).entities.map(({ id }) => id))).to.have.property('size', 4);
      await ok('DELETE', `/trust-list/${made.id}`);
      const revoking = internal({ revocationKeyChainId: 'signing' });
      const status = await ok('POST', '/trust-list', { entities: [revoking] });
      await ok('DELETE', `/trust-list/${status.id}`);
    });

    it('returns a remedy to an operator without a key', async () => {
      const { token } = await createTenant(service, 'keyless');
      expect((await callAs(token, 'DELETE', '/key-chain/trust-list')).status).to.equal(200);
      const answer = await callAs(token, 'POST', '/trust-list', { entities: [] });
      refused(answer, 400, 'invalid_input');
      expect(answer.body.detail).to.match(/no key chain for the usage "trustList".*POST \/key-chain/);
      const chain = { id: 'new', usageType: 'trustList' };
      expect((await callAs(token, 'POST', '/key-chain', chain)).status).to.equal(201);
      expect((await callAs(token, 'POST', '/trust-list', { entities: [] })).status).to.equal(201);
    });
  });

  describe('an export', () => {
    it('creates the same list again, on this service and on another one', async () => {
      const scheme = {
        LoTEType: 'urn:acme:list',
        SchemeOperatorAddress: {
          SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Main Street 1', Country: 'DE' }],
          SchemeOperatorElectronicAddress: [{ lang: 'en', uriValue: 'mailto:lists@acme.example' }],
        },
        PolicyOrLegalNotice: [{ LoTEPolicy: { lang: 'en', uriValue: 'https://acme.example/policy' } }],
      };
      const json = {
        id: 'travels',
        certId: 'trust-list',
        description: 'Travels',
        entities: [
          internal(),
          external(),
          external({ revocationCertPem: undefined, info: { name: 'Else', country: 'DE', streetAddress: 'Weg 1' } }),
        ],
        data: { LoTE: { ListAndSchemeInformation: scheme } },
      };
      await ok('POST', '/trust-list', json);
      const exported = await ok('GET', '/trust-list/travels/export');
      expect(exported).to.deep.include({
        id: 'travels',
        certId: 'trust-list',
        keyChainId: 'trust-list',
        description: 'Travels',
        data: json.data,
      });
      await ok('PUT', '/trust-list/travels', exported);
      expect(await ok('GET', '/trust-list/travels/export')).to.deep.equal(exported);
      const { token } = await createTenant(service, 'elsewhere');
      const made = await callAs(token, 'POST', '/trust-list', exported);
      expect(made.status, made.text).to.equal(201);
      const again = await callAs(token, 'GET', '/trust-list/travels/export');
      expect(again.body).to.deep.equal(exported);
    });
  });

  describe('a deleted list', () => {
    it('is no longer published, and its number continues when it is created again', async () => {
      const json = { id: 'comes-back', entities: [internal()] };
      await ok('POST', '/trust-list', json);
      await ok('PATCH', '/trust-list/comes-back', {});
      await ok('DELETE', '/trust-list/comes-back');
      for (const path of ['', '/export', '/versions']) {
        expect((await call('GET', `/trust-list/comes-back${path}`)).status, path).to.equal(404);
      }
      expect((await published('comes-back')).status).to.equal(404);
      const made = await ok('POST', '/trust-list', json);
      expect([made.sequenceNumber, numberOf(made.jwt)]).to.deep.equal([3, 3]);
    });
  });

  describe('a key chain', () => {
    it('cannot be deleted while a list references it, nor the last that signs lists', async () => {
      const { token } = await createTenant(service, 'holder');
      const as = (method: string, path: string, json?: unknown) => callAs(token, method, path, json);
      const conflict = async (method: string, path: string, json?: unknown) => {
        const answer = await as(method, path, json);
        expect([answer.status, answer.body.code], answer.text).to.deep.equal([409, 'conflict']);
        expect(answer.body.detail).to.include('trust list held');
      };
      for (const id of ['issuer', 'revoker']) await as('POST', '/key-chain', { id, usageType: 'signing' });
      await as('POST', '/key-chain', { id: 'signer', usageType: 'trustList' });
      const entity = internal({ issuerKeyChainId: 'issuer', revocationKeyChainId: 'revoker' });
      const json = { id: 'held', certId: 'signer', entities: [entity] };
      expect((await as('POST', '/trust-list', json)).status).to.equal(201);
      for (const id of ['issuer', 'revoker', 'signer']) await conflict('DELETE', `/key-chain/${id}`);
      await conflict('PATCH', '/key-chain/signer', { usages: ['signing'] });
      expect((await as('PATCH', '/key-chain/issuer', { usages: ['statusList'] })).status).to.equal(200);
      await as('PATCH', '/trust-list/held', { certId: null, entities: [] });
      for (const id of ['issuer', 'revoker', 'signer']) {
        expect((await as('DELETE', `/key-chain/${id}`)).status, id).to.equal(200);
      }
      await conflict('DELETE', '/key-chain/trust-list');
      await as('DELETE', '/trust-list/held');
      expect((await as('DELETE', '/key-chain/trust-list')).status).to.equal(200);
    });
  });

  describe('the published list', () => {
    it('is one signed text that may be cached for an hour', async () => {
      const answer = await published('both');
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/jwt']);
      expect(answer.text).to.match(/^[\w-]+\.[\w-]+\.[\w-]+$/);
      expect(answer.headers.get('cache-control')).to.equal('public, max-age=3600');
      expect(answer.headers.get('access-control-allow-origin')).to.equal('*');
      expect((await published('both')).text, 'the same for all').to.equal(answer.text);
      const head = await service.call('HEAD', '/acme/trust-list/both');
      expect([head.status, head.text]).to.deep.equal([200, '']);
    });

    it('is confirmed by its ETag until it changes', async () => {
      const etag = (await published('both')).headers.get('etag') ?? '';
      expect(etag).to.match(/^"[\w-]+"$/);
      for (const given of [etag, `W/${etag}`, `"other", ${etag}`]) {
        const again = await published('both', { 'If-None-Match': given });
        expect([again.status, again.text, again.headers.get('etag')], given).to.deep.equal([304, '', etag]);
      }
      await ok('PATCH', '/trust-list/both', {});
      const changed = await published('both', { 'If-None-Match': etag });
      expect(changed.status).to.equal(200);
      expect(changed.headers.get('etag')).to.not.equal(etag);
    });

    it('is served at no other address', async () => {
      for (const [id, of] of [
        ['none', 'acme'],
        ['both', 'nobody'],
        ['both', 'elsewhere'],
      ] as const) {
        expect((await published(id, {}, of)).status, `${of} ${id}`).to.equal(404);
      }
    });

    it('is cached no longer than its validity and not served after its expiry', async () => {
      const { sequenceNumber } = await ok('POST', '/trust-list', { id: 'ending', entities: [] });
      expect(sequenceNumber).to.equal(1);
      await later(30 * DAYS - 600_000, async () => {
        const [, age] = /max-age=(\d+)$/.exec((await published('ending')).headers.get('cache-control') ?? '') ?? [];
        expect(Number(age)).to.be.within(500, 601);
      });
      await later(30 * DAYS + 1000, async () => {
        const answer = await published('ending');
        expect([answer.status, answer.body.code]).to.deep.equal([503, 'unavailable']);
        expect(answer.headers.get('retry-after')).to.match(/^\d+$/);
        expect(answer.headers.get('cache-control')).to.equal('no-store');
        await renew();
        expect(numberOf((await published('ending')).text)).to.equal(2);
      });
    });

    it('stays published and is renewed while its tenant is suspended', async () => {
      const { token } = await createTenant(service, 'sleeper');
      await callAs(token, 'POST', '/trust-list', { id: 'list', entities: [internal()] });
      const root = await service.rootToken();
      await service.call('PATCH', '/tenant/sleeper', { token: root, json: { status: 'suspended' } });
      expect((await published('list', {}, 'sleeper')).status).to.equal(200);
      expect((await callAs(token, 'GET', '/trust-list')).status).to.equal(403);
      await later(25 * DAYS, renew);
      const answer = await published('list', {}, 'sleeper');
      expect([answer.status, numberOf(answer.text)]).to.deep.equal([200, 2]);
    });
  });

  describe('the scheduled renewal', () => {
    it('signs the list again before it expires, with the configured content, and not sooner', async () => {
      const { token } = await createTenant(service, 'renewed');
      const made = await callAs(token, 'POST', '/trust-list', { id: 'list', entities: [internal()] });
      const number = async () => numberOf((await published('list', {}, 'renewed')).text);
      await later(19 * DAYS, renew);
      expect(await number()).to.equal(1);
      const root = await service.rootToken();
      const json = { name: 'Another name' };
      expect((await service.call('PATCH', '/tenant/renewed', { token: root, json })).status).to.equal(200);
      await later(21 * DAYS, async () => {
        await renew();
        expect(await number()).to.equal(2);
        await renew();
        expect(await number(), 'once').to.equal(2);
      });
      const { body: list } = await callAs(token, 'GET', '/trust-list/list');
      const { ListAndSchemeInformation: scheme } = list.data.LoTE;
      expect(scheme.SchemeOperatorName).to.deep.equal([{ lang: 'en', value: 'Another name' }]);
      expect(new Date(scheme.NextUpdate).getTime()).to.be.closeTo(Date.now() + 51 * DAYS, 60_000);
      expect(list.entityConfig).to.deep.equal(made.body.entityConfig);
      const { body: versions } = await callAs(token, 'GET', '/trust-list/list/versions');
      expect(versions.map(({ jwt }: { jwt: string }) => jwt)).to.deep.equal([made.body.jwt]);
    });
  });
});
