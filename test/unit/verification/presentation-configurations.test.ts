import { expect } from 'chai';
import { OfflineListSigners } from '../../../application/configuration-files/offline.ts';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import { RemoteError } from '../../../application/ports/remote.ts';
import { ListSigners } from '../../../application/trust-lists/list-signers.ts';
import {
  DeletePresentationConfiguration,
  GetPresentationConfiguration,
  ListPresentationConfigurations,
  ReplacePresentationConfiguration,
  UpdatePresentationConfiguration,
} from '../../../application/verification/presentation-configurations.ts';
import type { Role } from '../../../domain/clients/role.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import type { Finding, ReportFindings } from '../../../domain/shared/finding.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { parseInput } from '../../../domain/shared/parse-input.ts';
import { PresentationConfigurationBody, PresentationConfigurationUpdate } from '../../../domain/verification/configuration.ts';
import { type CertifiedKey, certify, pem } from '../../support/test-certificates.ts';
import { type ListOptions, trustList } from '../../support/trust-list.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administrators.ts';
import { query } from './kit.ts';

const CHECK = { id: 'check', dcql_query: query({ id: 'card' }) };
const DATA = { type: 'payment', credential_ids: ['card'] };

describe('presentation configurations of a tenant', () => {
  let world: AdministrationWorld;
  let signer: CertifiedKey;
  let otherOperator: CertifiedKey;
  const caller = (allowed: string[] | null = null) => world.caller(['presentation:manage'], { allowedPresentationConfigs: allowed });
  const put = async (changes: object = {}, by = caller()) =>
    new ReplacePresentationConfiguration(world).execute(by, parseInput(PresentationConfigurationBody, { ...CHECK, ...changes }));
  const update = (id: string, changes: object, by = caller()) =>
    new UpdatePresentationConfiguration(world).execute(by, id, changes as JsonObject);
  const get = (id: string, by = caller()) => new GetPresentationConfiguration({}).execute(by, id);
  const remove = (id: string, by = caller()) => new DeletePresentationConfiguration(world).execute(by, id);
  const all = (by = caller()) => new ListPresentationConfigurations({}).execute(by);
  const ids = async (by = caller()) => (await all(by)).map(({ id }) => id);

  before(async () => {
    signer = await certify({ name: 'Lists' });
    otherOperator = await certify({ name: 'Other operator' });
  });
  beforeEach(async () => {
    world = await anAdministration();
    await world.store.prepare('a presentation', put);
  });

  it('are in order of their ids; a restricted client sees only its own', async () => {
    await put({ id: 'another' });
    expect(await ids()).to.deep.equal(['another', 'check']);
    expect(await ids(caller(['check']))).to.deep.equal(['check']);
  });

  it('are replaced entirely: omitted properties get their defaults', async () => {
    const { createdAt } = await put({ description: 'At the door', lifeTime: 60 });
    world.clock.forward(1_000);
    const replaced = await put();
    expect(replaced).to.include({ lifeTime: 300 }).and.not.have.property('description');
    expect([replaced.createdAt, replaced.updatedAt]).to.deep.equal([createdAt, world.clock.now()]);
    expect(await get('check')).to.deep.equal(replaced);
  });

  it('change the given properties, and reset those that are null', async () => {
    await put({ description: 'At the door', lifeTime: 60 });
    expect(await update('check', { lifeTime: null })).to.include({ lifeTime: 300, description: 'At the door' });
    expect(await update('check', { description: null })).to.not.have.property('description');
  });

  it('can be removed, unless a credential requires such a presentation', async () => {
    await put({ id: 'asked' });
    const now = world.clock.now();
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    const iaeActions = [{ type: 'openid4vp_presentation', presentationConfigId: 'asked' }];
    const card = CredentialConfigurationBody.parse({ id: 'card', config, iaeActions });
    await world.write((own) => own.credentialConfigurations.put({ ...card, createdAt: now, updatedAt: now }));
    expect(await endOf(remove('asked'))).to.equal('conflict');
    expect(await endOf(remove('check'))).to.equal('done');
    expect(await ids()).to.deep.equal(['asked']);
  });

  const other = () => caller(['other']);
  const refusals: [string, () => Promise<unknown>, string][] = [
    ['a read of an unknown id', () => get('nothing'), 'not_found'],
    ['a read of what the client may not use', () => get('check', other()), 'not_found'],
    ['a new one that the client may not use', () => put({ id: 'new' }, other()), 'forbidden'],
    ['a change of an unknown id', () => update('nothing', {}), 'not_found'],
    ['a change of what the client may not use', () => update('check', {}, other()), 'not_found'],
    ['a change of the id', () => update('check', { id: 'other' }), 'invalid_input id'],
    ['a change that makes it invalid', () => update('check', { lifeTime: 0 }), 'invalid_input lifeTime'],
    ['the removal of an unknown id', () => remove('nothing'), 'not_found'],
    ['the removal of what the client may not use', () => remove('check', other()), 'not_found'],
    [
      'a webhook at an address that may not be called',
      () => put({ webhook: { url: 'https://db.internal/' } }),
      'invalid_input webhook.url',
    ],
    [
      'a trust list at an address that may not be called',
      () => put({ trustAnchors: [{ trustList: 'https://db.internal/list', signedBy: [pem(signer)] }] }),
      'invalid_input trustAnchors.0.trustList',
    ],
  ];
  for (const [what, attempt, end] of refusals) {
    it(`are not changed by ${what}: ${end}`, async () => {
      const before = await all();
      expect(await endOf(attempt())).to.equal(end);
      expect(await all()).to.deep.equal(before);
    });
  }

  describe('with a trust list as anchor', () => {
    const LIST = 'https://lists.example/issuers.jwt';
    let answer: string | RemoteError | undefined;
    let calls: string[];
    const seconds = () => Math.floor(world.clock.now().getTime() / 1000);
    const listOf = (type: string, options: Partial<ListOptions> = {}) => {
      const entities = [{ name: 'Listed', services: [{ type, certificates: [signer.certificate] }] }];
      return trustList({ entities, signer, ...options }, seconds());
    };
    const online = () => {
      const remote = {
        refuses: () => false,
        request: async (url: string) => {
          calls.push(url);
          if (answer instanceof Error) throw answer;
          return { status: answer === undefined ? 404 : 200, body: Buffer.from(answer ?? 'nothing here') };
        },
      } as unknown as AdministrationWorld['remote'];
      return { ...world, remote, listSigners: new ListSigners({ ...world, remote }) };
    };
    const trusting = (changes: object = {}) => ({
      trustAnchors: [{ certificate: pem(signer) }, { trustList: LIST, signedBy: [pem(signer)], ...changes }],
    });
    const warningsOf = async (write: (report: ReportFindings) => Promise<unknown>) => {
      const findings: Finding[] = [];
      await write((some) => findings.push(...some));
      return findings.map(({ member, message }) => `${member}: ${message}`);
    };
    const replaceOnline = (changes: object) =>
      warningsOf((report) => {
        const body = parseInput(PresentationConfigurationBody, { ...CHECK, ...changes });
        return new ReplacePresentationConfiguration(online()).execute(caller(), body, report);
      });
    const updateOnline = (changes: object) =>
      warningsOf((report) => new UpdatePresentationConfiguration(online()).execute(caller(), 'check', changes as JsonObject, report));
    const OUTDATED = { NextUpdate: '2024-01-01T00:00:00Z', ListIssueDateTime: '2023-01-01T00:00:00Z' };

    beforeEach(() => {
      calls = [];
      answer = listOf('PID/Issuance');
    });

    it('has no warning about a list that can be used', async () => {
      expect(await replaceOnline(trusting())).to.deep.equal([]);
      expect(calls).to.deep.equal([LIST]);
    });

    const unusable: [string, () => typeof answer, string][] = [
      ['is not found', () => undefined, 'unavailable: HTTP status 404'],
      ['is unreachable', () => new RemoteError('unreachable', 'nobody there'), 'unavailable'],
      ['has expired', () => listOf('PID/Issuance', { scheme: OUTDATED }), 'outdated: NextUpdate has passed'],
      ['is closed', () => listOf('PID/Issuance', { scheme: { NextUpdate: null } }), 'closed'],
      ['is signed by another operator', () => listOf('PID/Issuance', { signer: otherOperator }), 'untrusted_signer'],
      ['names wallet providers', () => listOf('WalletSolution/Issuance'), 'not a list of issuers'],
    ];
    for (const [what, served, reason] of unusable) {
      it(`warns on PUT and PATCH with the reason when the list ${what}`, async () => {
        await put();
        answer = served();
        for (const write of [replaceOnline, updateOnline]) {
          const warnings = await write(trusting());
          expect(warnings).to.have.length(1);
          expect(warnings[0])
            .to.match(/^trustAnchors\.1\.trustList: /)
            .and.include(reason);
        }
      });
    }

    for (const [what, text] of [
      ['text', 'hello'],
      ['a page', '<!doctype html><html><body>Not here</body></html>'],
      ['another kind of token', 'status list'],
    ] as const) {
      it(`rejects the address of ${what}, and stores nothing`, async () => {
        const stored = await put();
        const typ = 'statuslist+jwt';
        answer = text === 'status list' ? listOf('PID/Issuance', { header: { typ } }) : text;
        for (const write of [replaceOnline, updateOnline])
          expect(await endOf(write(trusting()))).to.equal('invalid_input trustAnchors.1.trustList');
        expect(await get('check')).to.deep.equal(stored);
      });
    }

    it('warns when the document of a stored list is no longer a list', async () => {
      await replaceOnline(trusting());
      answer = 'hello';
      expect((await replaceOnline(trusting()))[0]).to.include('malformed');
    });

    it('is not fetched by a PATCH of other properties, or by an import', async () => {
      await replaceOnline(trusting());
      calls = [];
      expect(await updateOnline({ lifeTime: 60 })).to.deep.equal([]);
      const offline = { ...online(), listSigners: new OfflineListSigners(online()) };
      const body = parseInput(PresentationConfigurationBody, { ...CHECK, ...trusting() });
      await new ReplacePresentationConfiguration(offline).execute(caller(), body);
      expect(calls).to.deep.equal([]);
    });
  });

  const documents: [string, object, string][] = [
    ['without a query', { dcql_query: undefined }, 'dcql_query'],
    ['with an empty query', { dcql_query: { credentials: [] } }, 'dcql_query.credentials'],
    [
      'for a format that is unknown',
      { dcql_query: { credentials: [{ id: 'x', format: 'jwt_vc', meta: { vct_values: ['x'] } }] } },
      'dcql_query.credentials.0.format',
    ],
    [
      'with transaction data for an mdoc',
      {
        dcql_query: { credentials: [{ id: 'x', format: 'mso_mdoc', meta: { doctype_value: 'x' } }] },
        transaction_data: [{ type: 'payment', credential_ids: ['x'] }],
      },
      'transaction_data.0.credential_ids.0',
    ],
    ['that last no second', { lifeTime: 0 }, 'lifeTime'],
    ['that last more than a year', { lifeTime: 31_536_001 }, 'lifeTime'],
    ['with an invalid redirect address', { redirectUri: '/done' }, 'redirectUri'],
    ['with a script as redirect address', { redirectUri: 'javascript:alert(1)' }, 'redirectUri'],
    ['with a redirect address with a password', { redirectUri: 'https://u:p@a.example/{sessionId}' }, 'redirectUri'],
    ['with a redirect address with a line feed', { redirectUri: 'https://a.example/\n{sessionId}' }, 'redirectUri'],
    ['with data for an unknown query', { transaction_data: [{ ...DATA, credential_ids: ['other'] }] }, 'transaction_data.0.credential_ids'],
    ['with anchors that are invalid', { trustAnchors: [{ certificate: 'PEM' }] }, 'trustAnchors.0.certificate'],
    ['with a mode of another flow', { responseMode: 'fragment' }, 'responseMode'],
    ['with a webhook of another kind', { webhook: { url: 'ftp://x.example' } }, 'webhook.url'],
    ['with an access key that signs credentials', { accessKeyChainId: 'signing' }, 'accessKeyChainId'],
  ];
  for (const [what, changes, path] of documents) {
    it(`are not written ${what}`, async () => {
      const before = await all();
      const end = await endOf(put({ id: 'bad', ...changes }));
      expect(`${end}.`.startsWith(`invalid_input ${path}.`), end).to.equal(true);
      expect(await all()).to.deep.equal(before);
    });
  }
});

const AGE = { id: 'age', dcql_query: query({ id: 'pid' }) };
const ORDER = { body: { purpose: [{ lang: 'en', content: 'Age' }] } };

describe('client that manages presentations', () => {
  let world: AdministrationWorld;
  const caller = (roles: Role[] = ['presentation:manage'], allowed: string[] | null = null) =>
    world.caller(roles, { allowedIssuanceConfigs: null, allowedPresentationConfigs: allowed });
  const registrar = () => caller(['presentation:manage', 'registrar:manage']);
  /** Nothing is ordered here: what counts is who may. */
  const ports = () => ({ ...world, registrationCertificates: { assertUsable: async () => undefined } }) as never;
  const put = (changes: object, by = caller()) =>
    new ReplacePresentationConfiguration(ports()).execute(by, PresentationConfigurationBody.parse({ ...AGE, ...changes }));
  const update = (changes: object, by = caller()) =>
    new UpdatePresentationConfiguration(ports()).execute(by, 'age', PresentationConfigurationUpdate.parse(changes));
  beforeEach(async () => {
    world = await anAdministration();
  });

  it('orders registration certificates only with registrar:manage', async () => {
    expect(await endOf(put({ registrationCert: ORDER }))).to.equal('forbidden');
    await put({});
    expect(await endOf(update({ registrationCert: ORDER }))).to.equal('forbidden');
    await put({ registrationCert: ORDER }, registrar());
    expect(await update({ lifeTime: 300 })).to.deep.include({ registrationCert: ORDER, lifeTime: 300 });
    const other = { dcql_query: query({ id: 'other' }) };
    expect(await endOf(update(other)), 'an order for another query').to.equal('forbidden');
    expect(await endOf(put({ registrationCert: ORDER, ...other }))).to.equal('forbidden');
    expect(await update(other, registrar())).to.deep.include(other);
    expect(await update({ registrationCert: { id: 'known' } })).to.deep.include({ registrationCert: { id: 'known' } });
    expect(await endOf(update({ registrationCert: ORDER }))).to.equal('forbidden');
  });

  it('registers other purposes only with registrar:manage', async () => {
    const purpose = [{ lang: 'en', content: 'Another reason' }];
    await put({ registrationCert: { body: {} } }, registrar());
    expect(await endOf(update({ purpose }))).to.equal('forbidden');
    expect(await endOf(put({ registrationCert: { body: {} }, purpose }))).to.equal('forbidden');
    expect(await update({ purpose }, registrar())).to.deep.include({ purpose });
    expect(await update({ purpose })).to.deep.include({ purpose });
    expect(await endOf(update({ purpose: null }))).to.equal('forbidden');
    await put({ registrationCert: ORDER }, registrar());
    expect(await update({ purpose }), 'the order says another one').to.deep.include({ purpose });
    await put({ registrationCert: { id: 'known' } }, registrar());
    expect(await update({ purpose: null }), 'nothing is ordered').to.not.have.property('purpose');
  });

  it('does not use the key of a configuration that the client may not use', async () => {
    for (const id of ['theirs', 'spare']) {
      await new CreateKeyChain(world).execute(caller(), { id, usageType: 'access' });
    }
    await put({ id: 'other', accessKeyChainId: 'theirs' });
    await put({});
    const narrow = () => caller(['presentation:manage'], ['age']);
    expect(await endOf(update({ accessKeyChainId: 'theirs' }, narrow()))).to.equal('forbidden');
    expect(await endOf(put({ accessKeyChainId: 'theirs' }, narrow()))).to.equal('forbidden');
    expect(await update({ accessKeyChainId: 'spare' }, narrow())).to.include({ accessKeyChainId: 'spare' });
    await update({ accessKeyChainId: 'theirs' });
    expect(await update({ lifeTime: 300 }, narrow())).to.include({ accessKeyChainId: 'theirs' });
  });
});
