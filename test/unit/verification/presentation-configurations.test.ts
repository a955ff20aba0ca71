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
import { type AdministrationWorld, anAdministration, outcomeOf } from '../administrators.ts';
import { query } from './kit.ts';

const CHECK_CONFIGURATION = { id: 'check', dcql_query: query({ id: 'card' }) };
const TRANSACTION_DATA = { type: 'payment', credential_ids: ['card'] };

describe('presentation configurations of a tenant', () => {
  let world: AdministrationWorld;
  let signer: CertifiedKey;
  let otherOperator: CertifiedKey;
  const caller = (allowed: string[] | null = null) => world.caller(['presentation:manage'], { allowedPresentationConfigs: allowed });
  const put = async (changes: object = {}, by = caller()) =>
    new ReplacePresentationConfiguration(world).execute(
      by,
      parseInput(PresentationConfigurationBody, { ...CHECK_CONFIGURATION, ...changes }),
    );
  const update = (id: string, changes: object, by = caller()) =>
    new UpdatePresentationConfiguration(world).execute(by, id, changes as JsonObject);
  const get = (id: string, by = caller()) => new GetPresentationConfiguration({}).execute(by, id);
  const remove = (id: string, by = caller()) => new DeletePresentationConfiguration(world).execute(by, id);
  const listAll = (by = caller()) => new ListPresentationConfigurations({}).execute(by);
  const ids = async (by = caller()) => (await listAll(by)).map(({ id }) => id);

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
    await put({ id: 'required' });
    const now = world.clock.now();
    const config = { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] };
    const iaeActions = [{ type: 'openid4vp_presentation', presentationConfigId: 'required' }];
    const card = CredentialConfigurationBody.parse({ id: 'card', config, iaeActions });
    await world.write((repositories) => repositories.credentialConfigurations.put({ ...card, createdAt: now, updatedAt: now }));
    expect(await outcomeOf(remove('required'))).to.equal('conflict');
    expect(await outcomeOf(remove('check'))).to.equal('done');
    expect(await ids()).to.deep.equal(['required']);
  });

  const otherCaller = () => caller(['other']);
  const rejections: [string, () => Promise<unknown>, string][] = [
    ['a read of an unknown id', () => get('nothing'), 'not_found'],
    ['a read of a configuration that the client may not use', () => get('check', otherCaller()), 'not_found'],
    ['a new configuration that the client may not use', () => put({ id: 'new' }, otherCaller()), 'forbidden'],
    ['a change of an unknown id', () => update('nothing', {}), 'not_found'],
    ['a change of a configuration that the client may not use', () => update('check', {}, otherCaller()), 'not_found'],
    ['a change of the id', () => update('check', { id: 'other' }), 'invalid_input id'],
    ['a change that makes it invalid', () => update('check', { lifeTime: 0 }), 'invalid_input lifeTime'],
    ['the removal of an unknown id', () => remove('nothing'), 'not_found'],
    ['the removal of a configuration that the client may not use', () => remove('check', otherCaller()), 'not_found'],
    ['a webhook at a blocked address', () => put({ webhook: { url: 'https://db.internal/' } }), 'invalid_input webhook.url'],
    [
      'a trust list at a blocked address',
      () => put({ trustAnchors: [{ trustList: 'https://db.internal/list', signedBy: [pem(signer)] }] }),
      'invalid_input trustAnchors.0.trustList',
    ],
  ];
  for (const [description, attempt, outcome] of rejections) {
    it(`are not changed by ${description}: ${outcome}`, async () => {
      const before = await listAll();
      expect(await outcomeOf(attempt())).to.equal(outcome);
      expect(await listAll()).to.deep.equal(before);
    });
  }

  describe('with a trust list as anchor', () => {
    const LIST = 'https://lists.example/issuers.jwt';
    let answer: string | RemoteError | undefined;
    let calls: string[];
    const seconds = () => Math.floor(world.clock.now().getTime() / 1000);
    const signedListOf = (type: string, options: Partial<ListOptions> = {}) => {
      const entities = [{ name: 'Listed', services: [{ type, certificates: [signer.certificate] }] }];
      return trustList({ entities, signer, ...options }, seconds());
    };
    const onlinePorts = () => {
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
      await write((reported) => findings.push(...reported));
      return findings.map(({ member, message }) => `${member}: ${message}`);
    };
    const replaceOnline = (changes: object) =>
      warningsOf((report) => {
        const body = parseInput(PresentationConfigurationBody, { ...CHECK_CONFIGURATION, ...changes });
        return new ReplacePresentationConfiguration(onlinePorts()).execute(caller(), body, report);
      });
    const updateOnline = (changes: object) =>
      warningsOf((report) => new UpdatePresentationConfiguration(onlinePorts()).execute(caller(), 'check', changes as JsonObject, report));
    const OUTDATED = { NextUpdate: '2024-01-01T00:00:00Z', ListIssueDateTime: '2023-01-01T00:00:00Z' };

    beforeEach(() => {
      calls = [];
      answer = signedListOf('PID/Issuance');
    });

    it('has no warning about a list that can be used', async () => {
      expect(await replaceOnline(trusting())).to.deep.equal([]);
      expect(calls).to.deep.equal([LIST]);
    });

    const unusable: [string, () => typeof answer, string][] = [
      ['is not found', () => undefined, 'unavailable: HTTP status 404'],
      ['is unreachable', () => new RemoteError('unreachable', 'unreachable'), 'unavailable'],
      ['has expired', () => signedListOf('PID/Issuance', { scheme: OUTDATED }), 'outdated: NextUpdate has passed'],
      ['is closed', () => signedListOf('PID/Issuance', { scheme: { NextUpdate: null } }), 'closed'],
      ['is signed by another operator', () => signedListOf('PID/Issuance', { signer: otherOperator }), 'untrusted_signer'],
      ['names wallet providers', () => signedListOf('WalletSolution/Issuance'), 'not a list of issuers'],
    ];
    for (const [description, served, reason] of unusable) {
      it(`warns on PUT and PATCH with the reason when the list ${description}`, async () => {
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

    for (const [description, text] of [
      ['text', 'hello'],
      ['a page', '<!doctype html><html><body>Not here</body></html>'],
      ['another kind of token', 'status list'],
    ] as const) {
      it(`rejects the address of ${description}, and stores nothing`, async () => {
        const storedConfiguration = await put();
        const typ = 'statuslist+jwt';
        answer = text === 'status list' ? signedListOf('PID/Issuance', { header: { typ } }) : text;
        for (const write of [replaceOnline, updateOnline])
          expect(await outcomeOf(write(trusting()))).to.equal('invalid_input trustAnchors.1.trustList');
        expect(await get('check')).to.deep.equal(storedConfiguration);
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
      const offline = { ...onlinePorts(), listSigners: new OfflineListSigners(onlinePorts()) };
      const body = parseInput(PresentationConfigurationBody, { ...CHECK_CONFIGURATION, ...trusting() });
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
    ['with a lifetime of zero', { lifeTime: 0 }, 'lifeTime'],
    ['with a lifetime of more than a year', { lifeTime: 31_536_001 }, 'lifeTime'],
    ['with an invalid redirect address', { redirectUri: '/done' }, 'redirectUri'],
    ['with a script as redirect address', { redirectUri: 'javascript:alert(1)' }, 'redirectUri'],
    ['with a redirect address with a password', { redirectUri: 'https://u:p@a.example/{sessionId}' }, 'redirectUri'],
    ['with a redirect address with a line feed', { redirectUri: 'https://a.example/\n{sessionId}' }, 'redirectUri'],
    [
      'with data for an unknown query',
      { transaction_data: [{ ...TRANSACTION_DATA, credential_ids: ['other'] }] },
      'transaction_data.0.credential_ids',
    ],
    ['with anchors that are invalid', { trustAnchors: [{ certificate: 'PEM' }] }, 'trustAnchors.0.certificate'],
    ['with a mode of another flow', { responseMode: 'fragment' }, 'responseMode'],
    ['with a webhook of another kind', { webhook: { url: 'ftp://x.example' } }, 'webhook.url'],
    ['with an access key that signs credentials', { accessKeyChainId: 'signing' }, 'accessKeyChainId'],
  ];
  for (const [description, changes, path] of documents) {
    it(`are not written ${description}`, async () => {
      const before = await listAll();
      const outcome = await outcomeOf(put({ id: 'bad', ...changes }));
      expect(`${outcome}.`.startsWith(`invalid_input ${path}.`), outcome).to.equal(true);
      expect(await listAll()).to.deep.equal(before);
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
  /** No certificate is ordered. The tests check permissions only. */
  const ports = () => ({ ...world, registrationCertificates: { assertUsable: async () => undefined } }) as never;
  const put = (changes: object, by = caller()) =>
    new ReplacePresentationConfiguration(ports()).execute(by, PresentationConfigurationBody.parse({ ...AGE, ...changes }));
  const update = (changes: object, by = caller()) =>
    new UpdatePresentationConfiguration(ports()).execute(by, 'age', PresentationConfigurationUpdate.parse(changes));
  beforeEach(async () => {
    world = await anAdministration();
  });

  it('orders registration certificates only with registrar:manage', async () => {
    expect(await outcomeOf(put({ registrationCert: ORDER }))).to.equal('forbidden');
    await put({});
    expect(await outcomeOf(update({ registrationCert: ORDER }))).to.equal('forbidden');
    await put({ registrationCert: ORDER }, registrar());
    expect(await update({ lifeTime: 300 })).to.deep.include({ registrationCert: ORDER, lifeTime: 300 });
    const otherCaller = { dcql_query: query({ id: 'other' }) };
    expect(await outcomeOf(update(otherCaller)), 'an order for another query').to.equal('forbidden');
    expect(await outcomeOf(put({ registrationCert: ORDER, ...otherCaller }))).to.equal('forbidden');
    expect(await update(otherCaller, registrar())).to.deep.include(otherCaller);
    expect(await update({ registrationCert: { id: 'known' } })).to.deep.include({ registrationCert: { id: 'known' } });
    expect(await outcomeOf(update({ registrationCert: ORDER }))).to.equal('forbidden');
  });

  it('registers other purposes only with registrar:manage', async () => {
    const purpose = [{ lang: 'en', content: 'Another reason' }];
    await put({ registrationCert: { body: {} } }, registrar());
    expect(await outcomeOf(update({ purpose }))).to.equal('forbidden');
    expect(await outcomeOf(put({ registrationCert: { body: {} }, purpose }))).to.equal('forbidden');
    expect(await update({ purpose }, registrar())).to.deep.include({ purpose });
    expect(await update({ purpose })).to.deep.include({ purpose });
    expect(await outcomeOf(update({ purpose: null }))).to.equal('forbidden');
    await put({ registrationCert: ORDER }, registrar());
    expect(await update({ purpose }), 'the order has another query').to.deep.include({ purpose });
    await put({ registrationCert: { id: 'known' } }, registrar());
    expect(await update({ purpose: null }), 'no order is sent').to.not.have.property('purpose');
  });

  it('does not use the key of a configuration that the client may not use', async () => {
    for (const id of ['theirs', 'spare']) {
      await new CreateKeyChain(world).execute(caller(), { id, usageType: 'access' });
    }
    await put({ id: 'other', accessKeyChainId: 'theirs' });
    await put({});
    const restricted = () => caller(['presentation:manage'], ['age']);
    expect(await outcomeOf(update({ accessKeyChainId: 'theirs' }, restricted()))).to.equal('forbidden');
    expect(await outcomeOf(put({ accessKeyChainId: 'theirs' }, restricted()))).to.equal('forbidden');
    expect(await update({ accessKeyChainId: 'spare' }, restricted())).to.include({ accessKeyChainId: 'spare' });
    await update({ accessKeyChainId: 'theirs' });
    expect(await update({ lifeTime: 300 }, restricted())).to.include({ accessKeyChainId: 'theirs' });
  });
});
