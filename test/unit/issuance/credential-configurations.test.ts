import { expect } from 'chai';
import {
  DeleteCredentialConfiguration,
  GetCredentialConfiguration,
  ListCredentialConfigurations,
  ReplaceCredentialConfiguration,
  UpdateCredentialConfiguration,
} from '../../../application/issuance/credential-configurations.ts';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import type { Role } from '../../../domain/clients/role.ts';
import { CredentialConfigurationBody } from '../../../domain/issuance/configuration.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { parseInput } from '../../../domain/shared/parse-input.ts';
import { PresentationConfigurationBody } from '../../../domain/verification/configuration.ts';
import { type AdministrationWorld, anAdministration, outcomeOf } from '../administrators.ts';
import { query } from '../verification/kit.ts';

const DISPLAY = [{ name: 'Card', locale: 'en' }];
const CONFIG = { format: 'dc+sd-jwt', scope: 'card', display: DISPLAY };
const MDOC = { format: 'mso_mdoc', display: CONFIG.display, scope: 'mdoc' };
const CARD = { id: 'card', config: CONFIG, vct: 'urn:card:1', claims: { name: 'Ada' } };
const AUTH = { type: 'apiKey', config: { headerName: 'X-Key', value: 'a-key' } };
const WEBHOOK = { url: 'https://backend.example/claims', auth: AUTH };
const presentationAction = (presentationConfigId: string) => [{ type: 'openid4vp_presentation', presentationConfigId }];
const page = (callbackUrl: string) => [{ type: 'redirect_to_web', url: 'https://acme.example/', callbackUrl }];

describe('The credential configurations of a tenant', () => {
  let world: AdministrationWorld;
  const caller = (allowed: { issuance?: string[]; presentation?: string[]; roles?: Role[] } = {}) =>
    world.caller(allowed.roles ?? ['issuance:manage', 'presentation:request'], {
      allowedIssuanceConfigs: allowed.issuance ?? null,
      allowedPresentationConfigs: allowed.presentation ?? null,
    });
  const put = (changes: object = {}, by = caller()) =>
    new ReplaceCredentialConfiguration(world).execute(by, CredentialConfigurationBody.parse({ ...CARD, ...changes }));
  const update = (id: string, changes: object, by = caller()) =>
    new UpdateCredentialConfiguration(world).execute(by, id, changes as JsonObject);
  const get = (id: string, by = caller()) => new GetCredentialConfiguration({}).execute(by, id);
  const remove = (id: string, by = caller()) => new DeleteCredentialConfiguration(world).execute(by, id);
  const ids = async (by = caller()) => (await new ListCredentialConfigurations({}).execute(by)).map(({ id }) => id);

  beforeEach(async () => {
    world = await anAdministration();
    await world.store.prepare('a card, and a presentation of the age', async () => {
      await put();
      const now = world.clock.now();
      const age = PresentationConfigurationBody.parse({ id: 'age', dcql_query: query({ id: 'pid' }) });
      await world.write((repositories) => repositories.presentationConfigurations.put({ ...age, createdAt: now, updatedAt: now }));
    });
  });

  it('are written with a warning when lifeTime is beyond the certificate of the signer', async () => {
    const mdoc = { config: { ...MDOC, docType: 'org.example.1' }, vct: null, claims: null };
    for (const format of [{}, mdoc]) {
      const { findings } = await put({ id: 'long', ...format, lifeTime: 315_360_000 });
      expect(findings?.map(({ member }) => member)).to.deep.equal(['lifeTime']);
      const [chain] = await world.write((repositories) => repositories.keyChains.list());
      expect(findings?.[0]?.message).to.include(`expires at ${chain?.active.notAfter.toISOString().slice(0, 13)}`);
      const changed = await update('long', { description: 'x' });
      expect(changed.findings).to.have.length(1);
      expect((await update('long', { lifeTime: 86_400 })).findings).to.equal(undefined);
      expect(await get('long')).not.to.have.property('findings');
      await remove('long');
    }
    const { findings } = await put({ id: 'endless', lifeTime: null });
    expect(findings, 'an SD-JWT VC without lifeTime does not expire').to.equal(undefined);
  });

  it('are listed in order of their ids; a restricted client sees only its own', async () => {
    await put({ id: 'badge', config: { ...CONFIG, scope: 'badge' }, vct: 'urn:badge:1' });
    expect(await ids()).to.deep.equal(['badge', 'card']);
    expect(await ids(caller({ issuance: ['card'] }))).to.deep.equal(['card']);
    expect(await ids(caller({ issuance: [] }))).to.deep.equal(['badge', 'card']);
  });

  it('are created, and replaced entirely: omitted properties get their defaults', async () => {
    await put({ description: 'For members', lifeTime: 3_600 });
    const created = (await get('card')).createdAt;
    world.clock.forward(60_000);
    const replaced = await put({ statusManagement: true });
    expect(replaced).to.include({ statusManagement: true }).and.not.have.any.keys('description', 'lifeTime');
    expect([replaced.createdAt, replaced.updatedAt]).to.deep.equal([created, world.clock.now()]);
    expect(await get('card')).to.deep.equal(replaced);
  });

  it('change the given properties, and reset those that are null', async () => {
    await put({ description: 'For members', lifeTime: 3_600 });
    expect(await update('card', { lifeTime: 7_200 })).to.include({ lifeTime: 7_200, description: 'For members' });
    expect((await update('card', { description: null })).description ?? null).to.equal(null);
    expect(await update('card', { id: 'card' })).to.include({ lifeTime: 7_200 });
    await put({ keyBinding: false, statusManagement: true, maxIssuances: 3 });
    const reset = await update('card', { keyBinding: null, statusManagement: null, proofTypes: null });
    expect(reset).to.include({ keyBinding: true, statusManagement: false, maxIssuances: 3 });
  });

  it('keep the secret of a placeholder as long as its destination is the same', async () => {
    await put({ claims: null, claimsWebhook: WEBHOOK });
    const maskedWebhook = { ...WEBHOOK, auth: { ...AUTH, config: { ...AUTH.config, value: '***' } } };
    const { claimsWebhook } = await update('card', { claimsWebhook: maskedWebhook });
    expect(claimsWebhook).to.deep.equal(WEBHOOK);
    const movedWebhook = { ...maskedWebhook, url: 'https://thief.example/claims' };
    expect(await outcomeOf(update('card', { claimsWebhook: movedWebhook }))).to.match(/^invalid_input claimsWebhook/);
  });

  it('may share a scope when they have the same type', async () => {
    await put({ id: 'again' });
    expect(await ids()).to.deep.equal(['again', 'card']);
  });

  it('are deleted once', async () => {
    await remove('card');
    expect(await ids()).to.deep.equal([]);
    expect(await outcomeOf(remove('card'))).to.equal('not_found');
  });

  it('require existing presentation configurations; a restricted client may name its own, and unchanged ones', async () => {
    expect(await put({ iaeActions: presentationAction('age') })).to.deep.include({ iaeActions: presentationAction('age') });
    const otherClient = () => caller({ presentation: ['other'] });
    expect(await update('card', { iaeActions: presentationAction('age') }, otherClient())).to.include({ id: 'card' });
    await update('card', { iaeActions: null });
    expect(await outcomeOf(update('card', { iaeActions: presentationAction('age') }, otherClient()))).to.equal(
      'invalid_input iaeActions.0.presentationConfigId',
    );
  });

  it('name a presentation configuration only with a role for presentations, unless it was named before', async () => {
    const issuer = () => caller({ roles: ['issuance:manage', 'clients:manage', 'registrar:manage'] });
    const withAction = { iaeActions: presentationAction('age') };
    expect(await outcomeOf(put(withAction, issuer()))).to.equal('forbidden');
    expect(await outcomeOf(update('card', withAction, issuer()))).to.equal('forbidden');
    expect(await outcomeOf(put({ id: 'again', ...withAction }, issuer()))).to.equal('forbidden');
    for (const role of ['presentation:manage', 'presentation:request'] as const) {
      await put({ id: role.replace(':', '-'), ...withAction }, caller({ roles: ['issuance:manage', role] }));
    }
    await put(withAction);
    expect(await update('card', { lifeTime: 7_200 }, issuer())).to.deep.include(withAction);
    expect(await put(withAction, issuer())).to.deep.include(withAction);
    await update('card', { iaeActions: null }, issuer());
    expect(await outcomeOf(update('card', withAction, issuer()))).to.equal('forbidden');
  });

  describe('for a client that is restricted to some', () => {
    const MINE = { id: 'mine', config: { ...CONFIG, scope: 'mine' }, vct: 'urn:mine:1' };
    const ownCaller = () => caller({ issuance: ['mine', 'new'] });
    const mdoc = (docType: string) => ({
      config: { ...{ format: 'mso_mdoc', docType, scope: 'mine', display: DISPLAY }, claimsByNamespace: { [docType]: { name: {} } } },
      vct: null,
      claims: null,
    });
    beforeEach(async () => {
      world.clock.forward(1);
      for (const id of ['theirs', 'own-key']) {
        await new CreateKeyChain(world).execute(caller(), { id, usageType: 'signing' });
      }
      const licence = mdoc('org.iso.18013.5.1.mDL').config;
      await put({ ...mdoc('org.iso.18013.5.1.mDL'), id: 'mdl', config: { ...licence, scope: 'mdl' } });
      await put({ id: 'hosted', config: { ...CONFIG, scope: 'hosted' }, vct: { name: 'Hosted' } });
      await put({ id: 'keyed', config: { ...CONFIG, scope: 'keyed' }, vct: 'urn:k', keyChainId: 'theirs' });
      await put({ ...MINE, keyChainId: 'own-key' });
    });
    const hosted = async () => `${(await caller().tenant).issuer}/vct/hosted`;
    const attacks: [string, () => Promise<object> | object][] = [
      ['type', () => ({ vct: 'urn:card:1' })],
      ['type, by metadata', () => ({ vct: { vct: 'urn:card:1' } })],
      ['type, as a parent', () => ({ vct: { vct: 'urn:mine:2', extends: 'urn:card:1' } })],
      ['type, which the service hosts', async () => ({ vct: await hosted() })],
      ['type, in another format', () => mdoc('urn:card:1')],
      ['document type', () => mdoc('org.iso.18013.5.1.mDL')],
      ['document type as a type', () => ({ vct: 'org.iso.18013.5.1.mDL' })],
      ['scope', () => ({ config: { ...CONFIG, scope: 'card' } })],
      ['scope, with its type', () => ({ vct: 'urn:card:1', config: CONFIG })],
      ['key', () => ({ keyChainId: 'theirs' })],
      ['key, which is the default', () => ({ keyChainId: null })],
      ['key by name, which is the default', () => ({ keyChainId: 'signing' })],
    ];
    for (const [description, change] of attacks) {
      it(`do not get its ${description}`, async () => {
        const changes = await change();
        const expected = description === 'scope' ? 'invalid_input config.scope' : 'forbidden';
        expect(await outcomeOf(update('mine', changes, ownCaller()))).to.equal(expected);
        const fullConfiguration = { ...MINE, keyChainId: 'own-key', ...changes };
        expect(await outcomeOf(put(fullConfiguration, ownCaller()))).to.equal(expected);
        expect(await get('mine')).to.deep.include({ vct: MINE.vct, keyChainId: 'own-key' });
        if (description === 'key' || !description.startsWith('key')) {
          expect(await outcomeOf(put({ ...fullConfiguration, id: 'new' }, ownCaller()))).to.be.oneOf([
            expected,
            'invalid_input config.scope',
          ]);
        }
        // An unrestricted client may do it.
        expect(await outcomeOf(update('mine', changes))).to.not.equal('forbidden');
      });
    }

    it('are created with their own names under the shared key, and keep the values of others', async () => {
      const fresh = { id: 'new', config: { ...CONFIG, scope: 'new' }, vct: 'urn:new' };
      expect(await put(fresh, ownCaller())).to.include({ vct: 'urn:new' });
      await update('mine', { vct: 'urn:card:1', config: CONFIG, keyChainId: 'theirs' });
      expect(await update('mine', { lifeTime: 3_600 }, ownCaller())).to.include({ vct: 'urn:card:1', lifeTime: 3_600 });
    });
  });

  const unauthorized = () => caller({ issuance: ['other'] });
  const rejections: [string, () => Promise<unknown>, string][] = [
    ['a read of an unknown id', () => get('nothing'), 'not_found'],
    ['a read of a configuration that the client may not use', () => get('card', unauthorized()), 'not_found'],
    ['a new configuration that the client may not use', () => put({ id: 'new' }, unauthorized()), 'forbidden'],
    ['a change of an unknown id', () => update('nothing', { lifeTime: 60 }), 'not_found'],
    ['a change of a configuration that the client may not use', () => update('card', {}, unauthorized()), 'not_found'],
    ['a change of the id', () => update('card', { id: 'other' }), 'invalid_input id'],
    ['a change that makes it invalid', () => update('card', { lifeTime: 1 }), 'invalid_input lifeTime'],
    ['a change to no type at all', () => update('card', { config: null }), 'invalid_input config'],
    ['the removal of an unknown id', () => remove('nothing'), 'not_found'],
    ['the removal of a configuration that the client may not use', () => remove('card', unauthorized()), 'not_found'],
    ['an unknown key chain', () => put({ keyChainId: 'nothing' }), 'invalid_input keyChainId'],
    ['a key chain for another purpose', () => put({ keyChainId: 'access' }), 'invalid_input keyChainId'],
    ['a schema that is invalid', () => put({ schema: { type: 'nonsense' } }), 'invalid_input schema'],
    [
      'a claims webhook at a blocked address',
      () => put({ claims: null, claimsWebhook: { url: 'https://db.internal/' } }),
      'invalid_input claimsWebhook.url',
    ],
    [
      'a notification webhook at a blocked address',
      () => put({ notificationWebhook: { url: 'https://db.internal/' } }),
      'invalid_input notificationWebhook.url',
    ],
    ['a page at a blocked address', () => put({ iaeActions: page('https://db.internal/') }), 'invalid_input iaeActions.0.callbackUrl'],
    [
      'an unknown presentation',
      () => put({ iaeActions: presentationAction('nothing') }),
      'invalid_input iaeActions.0.presentationConfigId',
    ],
    ['the scope of another type', () => put({ id: 'badge', vct: 'urn:badge:1' }), 'invalid_input config.scope'],
    [
      'the mask of a secret that is not stored',
      () => put({ claims: null, claimsWebhook: { ...WEBHOOK, auth: { ...AUTH, config: { ...AUTH.config, value: '***' } } } }),
      'invalid_input claimsWebhook.auth.config.value',
    ],
  ];
  for (const [description, attempt, outcome] of rejections) {
    it(`are not changed by ${description}: ${outcome}`, async () => {
      const before = await new ListCredentialConfigurations({}).execute(caller());
      expect(await outcomeOf(attempt())).to.equal(outcome);
      expect(await new ListCredentialConfigurations({}).execute(caller())).to.deep.equal(before);
    });
  }

  const FRAMED = { ...CARD, disclosureFrame: { _sd: ['name'] } };
  const documents: [string, object, string][] = [
    ['without id', { id: undefined }, 'id'],
    ['with an id that needs escaping', { id: 'a b' }, 'id'],
    ['without config', { config: undefined }, 'config'],
    ['of an unknown format', { config: { ...FRAMED.config, format: 'vc+sd-jwt' } }, 'config.format'],
    ['of an mdoc without type', { config: { ...FRAMED.config, format: 'mso_mdoc' } }, 'config.docType'],
    ...['vct', 'cnf', 'status', 'exp', 'nbf', 'iss'].map((name): [string, object, string] => [
      // issuance N144
      `with a frame that hides ${name}`,
      { disclosureFrame: { _sd: [name] } },
      'disclosureFrame._sd',
    ]),
    ['with proofs, but without a key', { keyBinding: false, proofTypes: ['jwt'] }, 'proofTypes'],
    [
      'with a frame that its schema excludes',
      { schema: { type: 'object', properties: {}, additionalProperties: false } },
      'disclosureFrame._sd',
    ],
    [
      'with a colour that is invalid',
      { config: { ...FRAMED.config, display: [{ name: 'x', text_color: 'blue' }] } },
      'config.display.0.text_color',
    ],
    ['with a lifetime that is too short', { lifeTime: 59 }, 'lifeTime'],
    ['with claims of the protocol', { claims: { cnf: {} } }, 'claims.cnf'],
    ['with a schema that is invalid', { schema: { type: 'nonsense' } }, 'schema'],
    ['with a frame that is invalid', { disclosureFrame: { _sd: 'name' } }, 'disclosureFrame'],
    ['with a webhook nowhere', { claimsWebhook: { url: 'nowhere' } }, 'claimsWebhook.url'],
    [
      'with a key in a reserved header',
      { claimsWebhook: { url: 'https://x.example', auth: { type: 'apiKey', config: { headerName: 'Host', value: 'x' } } } },
      'claimsWebhook.auth.config.headerName',
    ],
    [
      'with a mask for an unknown key',
      { claimsWebhook: { url: 'https://x.example', auth: { ...AUTH, config: { ...AUTH.config, value: '***' } } } },
      'claimsWebhook.auth.config.value',
    ],
    [
      'with a mask for another unknown key',
      { notificationWebhook: { url: 'https://x.example', auth: { ...AUTH, config: { ...AUTH.config, value: '***' } } } },
      'notificationWebhook.auth.config.value',
    ],
    ['with an action without a target', { iaeActions: [{ type: 'redirect_to_web' }] }, 'iaeActions'],
    [
      'with an unknown presentation',
      { iaeActions: [{ type: 'openid4vp_presentation', presentationConfigId: 'nothing' }] },
      'iaeActions.0.presentationConfigId',
    ],
  ];
  for (const [description, changes, path] of documents) {
    it(`are not written ${description}, neither created nor changed`, async () => {
      await put(FRAMED);
      const before = await new ListCredentialConfigurations({}).execute(caller());
      const write = async () =>
        new ReplaceCredentialConfiguration(world).execute(
          caller(),
          parseInput(CredentialConfigurationBody, { ...FRAMED, id: 'bad', ...changes }),
        );
      const outcomes = [await outcomeOf(write())];
      if (path !== 'id' && path !== 'config') outcomes.push(await outcomeOf(update('card', changes)));
      for (const outcome of outcomes) expect(`${outcome}.`.startsWith(`invalid_input ${path}.`), outcome).to.equal(true);
      expect(await new ListCredentialConfigurations({}).execute(caller())).to.deep.equal(before);
    });
  }
});
