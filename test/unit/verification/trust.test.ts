import { expect } from 'chai';
import { signJwt } from '../../../application/keys/sign-jwt.ts';
import { RemoteError, type RemoteResponse } from '../../../application/ports/remote.ts';
import { type KeyChain, signingChain } from '../../../domain/keys/key-chain.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { packEntries } from '../../../domain/status-lists/bits.ts';
import { compressList } from '../../support/compress-list.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import { type ListedEntity, type ListOptions, trustList } from '../../support/trust-list.ts';
import { LIST_OF_LISTS, signXml, type XmlList, xmlList } from '../../support/xml-list.ts';
import { ACME, type PresentationChanges, PUBLIC_URL, pemOf, present, query, responseForm, World } from './kit.ts';

const LIST = 'https://operator.example/lote.jwt';
const STATUS = 'https://issuer.example/lists/1';

let world: World;
let operator: CertifiedKey;
let lists: Map<string, string | RemoteError | Partial<RemoteResponse>>;

const rootOf = (chain: KeyChain) => chain.root?.certificate ?? '';
const leafOf = (chain: KeyChain) => signingChain(chain)[0] ?? '';
const entity = (name: string, ...services: [string, string][]): ListedEntity => ({
  name,
  services: services.map(([type, certificate]) => ({ type, certificates: [certificate] })),
});
const issuerEntity = (type = 'PID/Issuance') => entity('Registry', [type, rootOf(world.issuer)]);

function publishList(options: ListOptions = {}, uri = LIST): void {
  lists.set(uri, trustList({ entities: [issuerEntity()], signer: operator, ...options }, world.seconds));
}

const anchor = (changes: JsonObject = {}): JsonObject => ({ trustList: LIST, signedBy: [pem(operator)], ...changes });

/** @returns the result in the report: the reason with its detail, or `accepted`. */
async function verifyPresentation(changes: PresentationChanges = {}): Promise<string> {
  const fetchedRequest = await world.preparedRequest();
  const form = await responseForm(fetchedRequest, { card: [present(world, fetchedRequest, changes)] });
  try {
    await world.receiveResponse.execute(ACME, fetchedRequest.publicId, form);
    return 'accepted';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const { outcome } = await world.session(fetchedRequest.session.id);
    expect(outcome?.credentials).to.equal(undefined);
    const failedCheck = ((outcome?.report ?? []) as readonly JsonObject[]).find(({ reason }) => reason !== undefined);
    return String(failedCheck?.['detail'] ?? failedCheck?.['reason']);
  }
}

async function serveStatus(chain: KeyChain): Promise<void> {
  const now = world.seconds;
  const status_list = { bits: 1, lst: compressList(packEntries(1, 100, [])) };
  const payload = { sub: STATUS, iat: now, exp: now + 3600, ttl: 600, status_list };
  const jwt = await signJwt(world.kms, { chain, typ: 'statuslist+jwt', payload });
  lists.set(STATUS, { contentType: 'application/statuslist+jwt', body: Buffer.from(jwt) });
}

describe('credential issuer on a trust list', () => {
  before(async () => {
    operator = await certify({ name: 'Operator' });
  });
  beforeEach(async () => {
    world = await World.make();
    lists = new Map();
    publishList();
    world.remote.answer = (url) => {
      const result = lists.get(url) ?? new RemoteError('unreachable', 'unreachable');
      if (result instanceof Error) return result;
      if (typeof result !== 'string') return { status: 200, contentType: '', body: Buffer.alloc(0), ...result };
      return { status: 200, contentType: 'application/jwt', body: Buffer.from(result) };
    };
    await world.configure({ trustAnchors: [anchor()] });
  });

  describe('in XML', () => {
    const QEAA = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
    const serveList = (list: XmlList = {}, by = operator) => {
      const services = [{ type: QEAA, certificates: [rootOf(world.issuer)], since: at(-60) }];
      const times = { issuedAt: at(-60), nextUpdate: at(86_400) };
      const xml = signXml(xmlList({ ...times, services, ...list }), by);
      lists.set(LIST, { contentType: 'application/vnd.etsi.tsl+xml', body: Buffer.from(xml) });
    };
    const at = (seconds: number) => new Date((world.seconds + seconds) * 1000).toISOString().replace(/\.\d{3}Z$/, 'Z');

    it('is accepted for a granted service', async () => {
      serveList();
      expect(await verifyPresentation()).to.equal('accepted');
    });

    it('is not trusted for a service that was withdrawn, of another type, or on a list with another signer', async () => {
      const [type, certificates] = [QEAA, [rootOf(world.issuer)]];
      const status = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/withdrawn';
      const refusals: [XmlList, CertifiedKey?][] = [
        [{ services: [{ type, certificates, status, since: at(-60) }] }],
        [{ services: [{ type: 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC', certificates, since: at(-60) }] }],
        [{}, await certify({ name: 'Other CA' })],
      ];
      for (const [list, by] of refusals) {
        world.trustLists.clear(ACME);
        serveList({ sequenceNumber: 2, ...list }, by);
        expect(await verifyPresentation()).to.match(/untrusted_chain/);
      }
    });

    describe('evaluated by the history of its service', () => {
      const SERVICE_STATUSES = 'http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus';
      const [granted, withdrawn] = [`${SERVICE_STATUSES}/granted`, `${SERVICE_STATUSES}/withdrawn`];
      type StatusPeriod = { readonly type?: string; readonly status: string; readonly since: string };
      /** The service was granted for forty seconds and is withdrawn since then. */
      const history = (changes: object = {}): StatusPeriod[] => [{ status: granted, since: at(-90), ...changes }];
      const serviceEntry = (changes: object = {}) => ({
        ...{ type: QEAA, certificates: [rootOf(world.issuer)] },
        ...{ status: withdrawn, since: at(-50), history: history(), ...changes },
      });
      const issuedAt = (seconds: number) => ({ visible: { iat: world.seconds + seconds } });
      const verifyService = async (service: object, changes: PresentationChanges, serviceStatusAt = 'issuance') => {
        await world.configure({ trustAnchors: [anchor({ serviceStatusAt })] });
        await world.store.lists(ACME).dropCopies();
        world.trustLists.clear(ACME);
        serveList({ services: [service as never], sequenceNumber: ++number });
        return verifyPresentation(changes);
      };
      let number = 10;

      it('is accepted for credentials from the time when it was granted, if the configuration allows it', async () => {
        expect(await verifyService(serviceEntry(), issuedAt(-60))).to.equal('accepted');
        expect(await verifyService(serviceEntry(), issuedAt(-90)), 'from the beginning').to.equal('accepted');
        expect(await verifyService(serviceEntry(), issuedAt(-60), 'check')).to.match(/^untrusted_chain/);
      });

      it('is rejected for credentials that it issued before or after that, to the second', async () => {
        const notApproved = /the service of its issuer was not approved when it was issued/;
        expect(await verifyService(serviceEntry(), issuedAt(-50))).to.match(notApproved);
        expect(await verifyService(serviceEntry(), issuedAt(-10))).to.match(notApproved);
        expect(await verifyService(serviceEntry(), issuedAt(-91))).to.match(notApproved);
      });

      it('is not trusted if the time is missing, or outside of the validity of its certificate', async () => {
        expect(await verifyService(serviceEntry(), { visible: { iat: undefined as never } })).to.match(/it has no time of issuance/);
        const earlyEntry = serviceEntry({ history: history({ since: '2001-01-01T00:00:00Z' }) });
        expect(await verifyService(earlyEntry, { visible: { iat: 1_000_000_000 } })).to.match(
          /its time of issuance is outside the validity of its signer/,
        );
      });

      it('is rejected with a history of another service, or without a time', async () => {
        const noStatus = /^untrusted_chain/;
        expect(await verifyService(serviceEntry({ history: history({ status: withdrawn }) }), issuedAt(-60))).to.match(noStatus);
        const CA = 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC';
        expect(await verifyService(serviceEntry({ history: history({ type: CA }) }), issuedAt(-60))).to.match(noStatus);
        expect(await verifyService(serviceEntry({ history: [] }), issuedAt(-60))).to.match(noStatus);
        const simultaneous = [...history(), { status: withdrawn, since: at(-90) }];
        expect(await verifyService(serviceEntry({ history: simultaneous }), issuedAt(-60)), 'two periods begin at the same time').to.match(
          noStatus,
        );
      });

      it('is rejected for credentials that it issued before it was granted, although it is granted now', async () => {
        const now = { status: granted, since: at(-50), history: history({ status: withdrawn }) };
        expect(await verifyService(serviceEntry(now), issuedAt(-60))).to.match(/was not approved when it was issued/);
        expect(await verifyService(serviceEntry(now), issuedAt(-50))).to.equal('accepted');
        expect(await verifyService(serviceEntry(now), issuedAt(-60), 'check')).to.equal('accepted');
      });
    });

    it('is read from no list without the certificate of its signer', async () => {
      serveList();
      const { signedBy: _signedBy, ...plain } = anchor();
      const rejectionOfAnchor = await world.configure({ trustAnchors: [plain] }).then(
        () => 'accepted',
        (error: Failure) => error.message,
      );
      expect(rejectionOfAnchor).to.match(/signedBy: Set the certificate/i);
    });
  });

  describe('is accepted', () => {
    for (const type of ['PID/Issuance', 'PubEAA/Issuance', 'EAA/Issuance']) {
      it(`as a provider of ${type}`, async () => {
        publishList({ entities: [issuerEntity(type)] });
        expect(await verifyPresentation()).to.equal('accepted');
      });
    }
    it('by its signing certificate when the list names that one', async () => {
      publishList({ entities: [entity('Registry', ['PID/Issuance', leafOf(world.issuer)])] });
      expect(await verifyPresentation()).to.equal('accepted');
    });
    it('as a notified public body', async () => {
      const ServiceStatus = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/notified';
      const [service] = issuerEntity('PubEAA/Issuance').services;
      if (service === undefined) throw new Error('no service');
      publishList({ entities: [{ name: 'Registry', services: [{ ...service, more: { ServiceStatus } }] }] });
      expect(await verifyPresentation()).to.equal('accepted');
    });
    it('beside a certificate that is named directly, and once for both', async () => {
      await world.configure({ trustAnchors: [{ certificate: pemOf(world.issuer) }, anchor()] });
      expect(await verifyPresentation()).to.equal('accepted');
    });
    it('by another list when one is unavailable, and the list is fetched once', async () => {
      lists.set('https://down.example/lote', new RemoteError('timeout', 'slow'));
      await world.configure({ trustAnchors: [anchor({ trustList: 'https://down.example/lote' }), anchor()] });
      // The write fetched both lists for warnings.
      world.remote.calls.length = 0;
      expect(await verifyPresentation()).to.equal('accepted');
      expect(await verifyPresentation()).to.equal('accepted');
      expect(world.remote.calls.filter(({ url }) => url === LIST)).to.have.length(1);
    });
  });

  describe('is rejected', () => {
    const invalidLists: Readonly<Record<string, [() => void | Promise<void>, string | RegExp]>> = {
      // N94
      'when it is listed for another service': [
        () => publishList({ entities: [issuerEntity('WalletSolution/Issuance')] }),
        /^untrusted_chain/,
      ],
      // N94
      'when its certificate is listed for revocation only': [
        () => publishList({ entities: [issuerEntity('PID/Revocation')] }),
        /^untrusted_chain/,
      ],
      'when its service is withdrawn': [
        () => {
          const ServiceStatus = 'http://uri.etsi.org/19602/PubEAAProvidersList/SvcStatus/withdrawn';
          const service = { type: 'PubEAA/Issuance', certificates: [rootOf(world.issuer)] };
          publishList({ entities: [{ name: 'R', services: [{ ...service, more: { ServiceStatus } }] }] });
        },
        /^untrusted_chain/,
      ],
      // N134
      'when the list is signed by another key': [
        async () => publishList({ signer: await certify({ name: 'Foe' }) }),
        /untrusted_chain.*operator\.example\/lote\.jwt: untrusted_signer/,
      ],
      // N134
      'when the signature of the list is broken': [
        () => {
          const [head, body, signature = ''] = String(lists.get(LIST)).split('.');
          lists.set(LIST, `${head}.${body}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`);
        },
        /lote\.jwt: signature/,
      ],
      // N135
      'when the list has expired': [
        () => publishList({ scheme: { NextUpdate: new Date(world.clock.time - 1000).toISOString() } }),
        /lote\.jwt: outdated/,
      ],
      // N135
      'when the list is closed': [() => publishList({ scheme: { NextUpdate: null } }), /^untrusted_chain.*lote\.jwt: closed/],
      // N137
      'when the list cannot be reached': [
        () => void lists.set(LIST, new RemoteError('unreachable', 'unreachable')),
        /lote\.jwt: unavailable: unreachable/,
      ],
      'when the list is too slow': [() => void lists.set(LIST, new RemoteError('timeout', 'slow')), /lote\.jwt: unavailable: timeout/],
      'when the list is too large': [() => void lists.set(LIST, new RemoteError('too_large', 'huge')), /lote\.jwt: unavailable: too_large/],
      'when the address of the list answers with something else': [
        () => void lists.set(LIST, { contentType: 'text/html', body: Buffer.from('<h1>Hello</h1>') }),
        /lote\.jwt: malformed/,
      ],
      'when the address of the list answers with an error': [
        () => void lists.set(LIST, { status: 500 }),
        /lote\.jwt: unavailable: HTTP status 500/,
      ],
      'when only another type is accepted': [
        () => world.configure({ trustAnchors: [anchor({ serviceTypes: ['http://uri.etsi.org/19602/SvcType/EAA/Issuance'] })] }),
        /^untrusted_chain/,
      ],
    };
    for (const [name, [prepare, expected]] of Object.entries(invalidLists)) {
      it(name, async () => {
        await prepare();
        expect(await verifyPresentation()).to.match(expected as RegExp);
      });
    }

    // N136
    it('when a newer list omits it, and again with an older list that names it', async () => {
      const olderRoot = String(lists.get(LIST));
      expect(await verifyPresentation()).to.equal('accepted');
      publishList({ entities: [], sequenceNumber: 2 });
      world.trustLists.clear(ACME);
      expect(await verifyPresentation()).to.match(/^untrusted_chain/);
      lists.set(LIST, olderRoot);
      world.trustLists.clear(ACME);
      expect(await verifyPresentation()).to.match(/lote\.jwt: sequence_went_back/);
    });
    it('once the list has expired, for a copy of any age', async () => {
      publishList({ scheme: { NextUpdate: new Date(world.clock.time + 600_000).toISOString() } });
      expect(await verifyPresentation()).to.equal('accepted');
      world.clock.time += 601_000;
      expect(await verifyPresentation()).to.match(/lote\.jwt: outdated/);
    });
    it('when the list is removed from the configuration', async () => {
      expect(await verifyPresentation()).to.equal('accepted');
      await world.configure({ trustAnchors: [{ keyChainId: 'signing' }] });
      expect(await verifyPresentation()).to.match(/^untrusted_chain/);
    });
  });

  describe('with a revocation service', () => {
    const visible = { status: { status_list: { idx: 1, uri: STATUS } } };
    let revoker: KeyChain;
    beforeEach(async () => {
      revoker = await world.keyChain('elsewhere', 'revoker', ['statusList']);
    });

    it('accepts only status lists of that service', async () => {
      publishList({ entities: [entity('Registry', ['PID/Issuance', rootOf(world.issuer)], ['PID/Revocation', rootOf(revoker)])] });
      await serveStatus(revoker);
      expect(await verifyPresentation({ visible })).to.equal('accepted');
      world.remoteStatusLists.clear(ACME);
      await serveStatus(world.issuer);
      expect(await verifyPresentation({ visible })).to.match(/^status_invalid/);
    });
    // N143
    it('rejects status lists by the service of another entity', async () => {
      publishList({ entities: [issuerEntity(), entity('Other', ['PID/Revocation', rootOf(revoker)])] });
      await serveStatus(revoker);
      expect(await verifyPresentation({ visible })).to.match(/^status_invalid/);
    });
    it('accepts status lists by its service, whatever other lists contain about the issuer, in either order', async () => {
      const secondList = 'https://second.example/lote.jwt';
      publishList({}, secondList);
      publishList({ entities: [entity('Registry', ['PID/Issuance', rootOf(world.issuer)], ['PID/Revocation', rootOf(revoker)])] });
      for (const listUris of [
        [LIST, secondList],
        [secondList, LIST],
      ]) {
        await world.configure({ trustAnchors: listUris.map((trustList) => anchor({ trustList })) });
        world.remoteStatusLists.clear(ACME);
        await serveStatus(world.issuer);
        expect(await verifyPresentation({ visible })).to.match(/^status_invalid/);
        world.remoteStatusLists.clear(ACME);
        await serveStatus(revoker);
        expect(await verifyPresentation({ visible })).to.equal('accepted');
      }
    });
    it('accepts status lists by the service on the trust list that the query requires', async () => {
      const secondList = 'https://second.example/lote.jwt';
      publishList({}, secondList);
      publishList({ entities: [entity('Registry', ['PID/Issuance', rootOf(world.issuer)], ['PID/Revocation', rootOf(revoker)])] });
      const bothAnchors = [LIST, secondList].map((trustList) => anchor({ trustList }));
      for (const [authorities, signer, otherSigner] of [
        [LIST, revoker, world.issuer],
        [secondList, world.issuer, revoker],
      ] as const) {
        await world.configure({
          dcql_query: query({ id: 'card', trusted_authorities: [{ type: 'etsi_tl', values: [authorities] }] }),
          trustAnchors: bothAnchors,
        });
        world.remoteStatusLists.clear(ACME);
        await serveStatus(otherSigner);
        expect(await verifyPresentation({ visible })).to.match(/^status_invalid/);
        world.remoteStatusLists.clear(ACME);
        await serveStatus(signer);
        expect(await verifyPresentation({ visible })).to.equal('accepted');
      }
    });
    it('accepts status lists of this service when that list is signed by the revocation service', async () => {
      const ownChain = { status: { status_list: { idx: 0, uri: `${PUBLIC_URL}/acme/status-list/main` } } };
      const issuer = (await (await world.caller()).tenant.keyChains()).find(({ id }) => id === 'signing');
      if (issuer === undefined) throw new Error('no chain');
      publishList({ entities: [entity('Registry', ['PID/Issuance', rootOf(issuer)], ['PID/Revocation', leafOf(revoker)])] });
      world.localStatusLists.entries.set('acme/main/0', 0);
      world.localStatusLists.signers.set('acme/main', signingChain(issuer));
      expect(await verifyPresentation({ visible: ownChain, issuer })).to.match(/^status_invalid/);
      world.localStatusLists.signers.set('acme/main', signingChain(revoker));
      expect(await verifyPresentation({ visible: ownChain, issuer })).to.equal('accepted');
    });
    it('rejects status lists by its service of another type', async () => {
      publishList({ entities: [entity('Registry', ['PID/Issuance', rootOf(world.issuer)], ['EAA/Revocation', rootOf(revoker)])] });
      await serveStatus(revoker);
      expect(await verifyPresentation({ visible })).to.match(/^status_invalid/);
      world.remoteStatusLists.clear(ACME);
      await serveStatus(world.issuer);
      expect(await verifyPresentation({ visible })).to.equal('accepted');
    });
  });

  describe('that a query requires', () => {
    const OTHER = 'https://other.example/lote.jwt';
    const demandAuthorities = (values: string[], trustAnchors: JsonObject[]) =>
      world.configure({ dcql_query: query({ id: 'card', trusted_authorities: [{ type: 'etsi_tl', values }] }), trustAnchors });

    it('is found on the list that the query names', async () => {
      await demandAuthorities([LIST], [anchor()]);
      expect(await verifyPresentation()).to.equal('accepted');
    });
    it('is found there even if it is trusted by its certificate as well', async () => {
      await demandAuthorities([LIST], [{ certificate: pemOf(world.issuer) }, anchor()]);
      expect(await verifyPresentation()).to.equal('accepted');
    });
    it('is not searched on a list that the query does not name', async () => {
      publishList({ entities: [] }, OTHER);
      await demandAuthorities([OTHER], [anchor(), anchor({ trustList: OTHER })]);
      expect(await verifyPresentation()).to.match(/^untrusted_authority/);
    });
    const storedAnchors = async () => (await (await world.caller()).tenant.presentationConfiguration('card'))?.trustAnchors ?? [];
    const rejectionOfDemand = async (values: string[], trustAnchors: JsonObject[] = [anchor()]) => {
      const error = await demandAuthorities(values, trustAnchors).catch((thrown: unknown) => thrown);
      return error instanceof Failure ? error.details.errors?.[0] : undefined;
    };
    const path = 'dcql_query.credentials.0.trusted_authorities.0.values.0';

    it('is found on a list that only the query names, whose signer was pinned when it was written', async () => {
      publishList({}, OTHER);
      await demandAuthorities([OTHER], [{ ownAuthorities: true }]);
      expect(await storedAnchors()).to.deep.equal([{ ownAuthorities: true }, { trustList: OTHER, signedBy: [pem(operator)] }]);
      expect(await verifyPresentation()).to.equal('accepted');
      const impostor = await certify({ name: 'Impostor' });
      world.trustLists.clear(ACME);
      // An impostor is not trusted either if no valid copy is cached.
      await world.store.lists(ACME).dropCopies();
      publishList({ signer: impostor, sequenceNumber: 2 }, OTHER);
      expect(await verifyPresentation()).to.match(/untrusted/);
    });
    it('keeps the pinned signer when the configuration is written again without it', async () => {
      publishList({}, OTHER);
      await demandAuthorities([OTHER], [{ ownAuthorities: true }]);
      const before = await storedAnchors();
      lists.delete(OTHER);
      await demandAuthorities([OTHER], [{ ownAuthorities: true }]);
      expect(await storedAnchors()).to.deep.equal(before);
    });
    it('is not searched on an unavailable list, which is rejected when it is written', async () => {
      expect(await rejectionOfDemand([OTHER])).to.deep.include({ path });
      publishList({ signer: operator, entities: [] }, OTHER);
      lists.set(OTHER, '<TrustServiceStatusList/>');
      expect((await rejectionOfDemand([OTHER]))?.message).to.match(/XML/);
      expect((await rejectionOfDemand([`${PUBLIC_URL}/acme/trust-list/none`]))?.message).to.match(/publishes no such list/);
    });
    it('is found on a list that a list of lists points to, and on no other', async () => {
      const europe = await certify({ name: 'Europe' });
      const LOTL = 'https://lists.example/lotl';
      const [issuedAt, nextUpdate] = [-60, 86_400].map((seconds) => new Date((world.seconds + seconds) * 1000).toISOString()) as [
        string,
        string,
      ];
      const type = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
      const xml = (uri: string, list: XmlList, by: CertifiedKey) => lists.set(uri, signXml(xmlList({ issuedAt, nextUpdate, ...list }), by));
      const services = [{ type, since: issuedAt, certificates: [rootOf(world.issuer)] }];
      xml('https://de.example/list', { territory: 'DE', services }, operator);
      const pointers = [{ uri: 'https://de.example/list', territory: 'DE', signers: [operator.certificate] }];
      xml(LOTL, { type: LIST_OF_LISTS, territory: 'EU', pointers }, europe);
      const followedAnchor = { trustList: LOTL, signedBy: [pem(europe)], follow: {} };
      await demandAuthorities([LOTL], [followedAnchor]);
      expect(await verifyPresentation()).to.equal('accepted');
      publishList({ entities: [] }, OTHER);
      await demandAuthorities([OTHER], [followedAnchor, anchor({ trustList: OTHER })]);
      expect(await verifyPresentation()).to.match(/^untrusted_authority/);
    });
    it('is not searched on a list that only points to others', async () => {
      const scheme = { PointersToOtherLoTE: [{ LoTELocation: 'https://elsewhere.example' }] };
      publishList({ entities: [], scheme }, OTHER);
      expect((await rejectionOfDemand([OTHER]))?.message).to.match(/points to other lists/);
    });
  });

  describe('is configured', () => {
    const rejectionOfAnchor = async (trustAnchor: JsonObject) => {
      const error = await world.configure({ trustAnchors: [trustAnchor] }).catch((thrown: unknown) => thrown);
      expect(error, 'refused').to.be.instanceOf(Error);
      return String(error);
    };
    it('only with the signers of the list', async () => {
      expect(await rejectionOfAnchor({ trustList: LIST })).to.match(/trustAnchors\.0\.signedBy: Set the certificates/);
    });
    it('20 times at most, also under one address', async () => {
      const entries = Array.from({ length: 21 }, () => anchor());
      const error = await world.configure({ trustAnchors: entries }).catch((thrown: unknown) => thrown);
      expect(String(error)).to.match(/at most 20 trust lists/);
    });
    it('only with parsable certificates', async () => {
      expect(await rejectionOfAnchor(anchor({ signedBy: ['nonsense'] }))).to.match(/trustAnchors\.0\.signedBy\.0/);
    });
    it('only with an http(s) address, and service types of issuers', async () => {
      expect(await rejectionOfAnchor(anchor({ trustList: 'file:///etc/passwd' }))).to.match(/http or https/);
      expect(await rejectionOfAnchor(anchor({ serviceTypes: ['http://x.example/Revocation'] }))).to.match(/Issuance/);
    });
  });
});
