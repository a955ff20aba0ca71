import { expect } from 'chai';
import { type Authorization, advance } from '../../../domain/oauth/authorization.ts';
import {
  areActionsDone,
  completeAction,
  type Interaction,
  type PendingPresentation,
  type PendingWebStep,
  parseAnswer,
  requiredActions,
  startInteraction,
  webStepUrl,
  withoutPending,
} from '../../../domain/oauth/interaction.ts';
import {
  audiencesOf,
  chooseDraft,
  codeResponse,
  type InteractionDraft,
  type InteractionKind,
  interactionResponse,
  parseInteractionTypes,
  responseModeOf,
  sessionFailure,
  supportsWeb,
} from '../../../domain/oauth/interaction-draft.ts';
import { parseDecrypted, parsePresentation, presentationParameters } from '../../../domain/oauth/interaction-presentation.ts';
import type { InteractiveAction } from '../../../domain/oauth/interactive-action.ts';
import { resultOrFailureCode as outcome } from '../../support/failures.ts';
import { CODE_VERIFIER } from '../../support/raw-wallet.ts';

const CHALLENGE = '_IhBZY88woJ6oD5MlABM04Aap43i2LzsA14HBhVnfos';
const ENDPOINT = 'https://issuer.example/acme/interactive-authorization';

const show = (presentationConfigId: string, label?: string): InteractiveAction => ({
  type: 'openid4vp_presentation',
  presentationConfigId,
  ...(label === undefined ? {} : { label }),
});
const visit = (url: string, callbackUrl?: string): InteractiveAction => ({
  type: 'redirect_to_web',
  url,
  ...(callbackUrl === undefined ? {} : { callbackUrl }),
});

const since = new Date('2026-06-01T12:00:00Z');
const until = new Date('2026-06-01T12:05:00Z');
const PRESENTATION: PendingPresentation = { kind: 'presentation', configurationId: 'check', since, until, nonce: 'n', dcqlQuery: {} };
const WEB: PendingWebStep = { kind: 'web', since, until, pageHandle: 'id.secret', hasReturned: true };

function startedInteraction(actions: readonly InteractiveAction[], pending?: Interaction['pending']): Interaction {
  const interaction = startInteraction({ draft: 'ia', provesKey: false, actions });
  return pending === undefined ? interaction : { ...interaction, pending };
}

describe('actions of an interactive authorization', () => {
  const [a, b, page] = [show('a'), show('b'), visit('https://x.example/')];
  const configurations = [
    { id: 'none' },
    { id: 'null', iaeActions: null },
    { id: 'one', iaeActions: [a, page] },
    { id: 'two', iaeActions: [b, show('a', 'Once more'), visit('https://x.example/', 'https://x.example/ok')] },
  ];

  // biome-ignore format: a table
  const cases: [string, readonly string[], readonly InteractiveAction[]][] = [
    ['empty without configurations', [], []],
    ['empty for configurations without actions', ['none', 'null'], []],
    ['empty for deleted configurations', ['gone'], []],
    ['those of a configuration in their order', ['one'], [a, page]],
    ['the actions of several configurations, without duplicates', ['one', 'none', 'two'], [a, page, b, visit('https://x.example/', 'https://x.example/ok')]],
    ['those of several in the order of the request', ['two', 'one'], [b, show('a', 'Once more'), visit('https://x.example/', 'https://x.example/ok'), page]],
  ];
  for (const [description, ids, expected] of cases) {
    it(`are ${description}`, () => expect(requiredActions(configurations, ids)).to.deep.equal(expected));
  }

  it('are done sequentially, and presented values are stored', () => {
    const start = startedInteraction([a, page, b], PRESENTATION);
    const credentials = [
      { id: 'card', values: { name: 'Ada' } },
      { id: 'optional', error: 'missing' },
      { values: { name: 'of no query' } },
    ];
    const second = completeAction(start, credentials);
    expect(second).to.deep.equal({
      ...startedInteraction([page, b]),
      presented: [{ id: 'card', values: { name: 'Ada' } }],
      done: second.done,
    });
    const third = completeAction({ ...second, pending: WEB });
    expect(third).to.deep.equal({ ...second, actions: [b], done: third.done });
    const last = completeAction(third, [{ id: 'card', values: [{ name: 'Bob' }] }]);
    expect(last.actions).to.deep.equal([]);
    expect(completeAction(last).done, 'no further action is required').to.deep.equal(last.done);
    expect(last.presented.map(({ values }) => values)).to.deep.equal([{ name: 'Ada' }, [{ name: 'Bob' }]]);
  });

  it('are matched by their purpose, regardless of their names', () => {
    const { done } = completeAction(completeAction(startedInteraction([a, page])));
    const isDone = (...iaeActions: InteractiveAction[]) => areActionsDone({ id: 'x', iaeActions }, done);
    expect([isDone(), isDone(a), isDone(page, a), isDone({ ...a, label: 'other words' })]).to.deep.equal(Array(4).fill(true));
    const confirmed = { ...page, callbackUrl: 'https://web.example/confirm' } as InteractiveAction;
    expect([isDone(a, b), isDone(confirmed), areActionsDone({ id: 'x', iaeActions: [a] })]).to.deep.equal(Array(3).fill(false));
  });

  it('erase presented values when the authorization ends', () => {
    const interaction = completeAction(startedInteraction([a, page]), [{ id: 'card', values: { name: 'Ada' } }]);
    const finished = advance({ version: 1, stage: 'interacting', interaction } as Authorization, { stage: 'done' });
    expect(JSON.stringify(finished)).to.not.include('Ada');
  });

  it('cannot be answered during a call to the backend', () => {
    expect(withoutPending(startedInteraction([a], PRESENTATION))).to.deep.equal(startedInteraction([a]));
  });
});

describe('presentation request of an interactive authorization', () => {
  it('is encrypted with a key, and plain without one', () => {
    const responseModeOf = (pending: PendingPresentation) => presentationParameters('ia', pending, [], {}, false)['response_mode'];
    const encryption = { publicJwk: { kty: 'EC' }, d: 'd' };
    expect([responseModeOf(PRESENTATION), responseModeOf({ ...PRESENTATION, encryption })]).to.deep.equal(['ia_post', 'ia_post.jwt']);
  });
});

describe('response within an interactive authorization', () => {
  const forged = { ...WEB, hasReturned: false };
  // biome-ignore format: a table
  const cases: [string, PendingPresentation | PendingWebStep, Record<string, string>, string | undefined, string][] = [
    ['a presentation', PRESENTATION, { openid4vp_response: '{}' }, undefined, 'presentation'],
    ['a presentation with more', PRESENTATION, { openid4vp_response: '{}', code_verifier: 'x' }, undefined, 'presentation'],
    ['no presentation', PRESENTATION, {}, undefined, 'invalid_request'],
    ['a verifier for a presentation', PRESENTATION, { code_verifier: CODE_VERIFIER }, CHALLENGE, 'invalid_request'],
    ['the verifier', WEB, { code_verifier: CODE_VERIFIER }, CHALLENGE, 'web'],
    ['no verifier', WEB, {}, CHALLENGE, 'invalid_grant'],
    ['another verifier', WEB, { code_verifier: CODE_VERIFIER.replace('G', 'H') }, CHALLENGE, 'invalid_grant'],
    ['the challenge', WEB, { code_verifier: CHALLENGE }, CHALLENGE, 'invalid_grant'],
    ['a verifier for no challenge', WEB, { code_verifier: CODE_VERIFIER }, undefined, 'invalid_grant'],
    ['the verifier before the browser is back', forged, { code_verifier: CODE_VERIFIER }, CHALLENGE, 'invalid_request'],
    ['a presentation for the web', WEB, { openid4vp_response: '{}', code_verifier: CODE_VERIFIER }, CHALLENGE, 'invalid_request'],
  ];
  for (const [description, pending, form, challenge, expected] of cases) {
    it(`with ${description} as its content is ${expected}`, () => {
      expect(outcome(() => parseAnswer(pending, form, challenge).kind)).to.equal(expected);
    });
  }

  // biome-ignore format: a table
  const responses: [string, string, boolean, string][] = [
    ['presentations', '{"vp_token":{}}', false, 'presentations'],
    ['a vp_token of any type', '{"vp_token":null}', false, 'presentations'],
    ['an error', '{"error":"access_denied","error_description":"x"}', false, 'wallet_error'],
    ['an error where encryption is required', '{"error":"access_denied"}', true, 'wallet_error'],
    ['a ciphertext', '{"response":"a"}', true, 'encrypted'],
    ['presentations where encryption is required', '{"vp_token":{}}', true, 'invalid_request'],
    ['a ciphertext where encryption is not required', '{"response":"a"}', false, 'invalid_request'],
    ['a ciphertext and presentations', '{"response":"a","vp_token":{}}', true, 'invalid_request'],
    ['a ciphertext and an error', '{"response":"a","error":"x"}', true, 'invalid_request'],
    ['a ciphertext that is not a string', '{"response":{}}', true, 'invalid_request'],
    ['presentations and an error', '{"vp_token":{},"error":"x"}', false, 'invalid_request'],
    ['nothing', '{}', false, 'invalid_request'],
    ['a property twice', '{"vp_token":{},"vp_token":{}}', false, 'invalid_request'],
    ['invalid JSON', 'vp_token', false, 'invalid_request'],
    ['not an object', '[]', false, 'invalid_request'],
  ];
  for (const [description, text, isEncrypted, expected] of responses) {
    it(`with ${description} is ${expected}`, () => {
      expect(outcome(() => parsePresentation(text, isEncrypted).kind)).to.equal(expected);
    });
  }

  it('may contain presentations or an error in its ciphertext, and nothing else', () => {
    const parse = (text: string | undefined) => outcome(() => parseDecrypted(text).kind);
    expect(['{"vp_token":{}}', '{"error":"x"}'].map(parse)).to.deep.equal(['presentations', 'wallet_error']);
    for (const text of [undefined, '', '[]', '{}', '{"response":"a"}', '{"vp_token":1,"error":"x"}']) {
      expect(parse(text), text).to.equal('invalid_request');
    }
  });

  it('contains an error with or without a code', () => {
    const code = (error: unknown) => {
      const parsed = parsePresentation(JSON.stringify({ error }), false);
      return parsed.kind === 'wallet_error' ? parsed.code : parsed.kind;
    };
    expect(code('access_denied')).to.equal('access_denied');
    for (const error of ['<b>', 'a\nb', '', 5, null, 'x'.repeat(65)]) expect(code(error)).to.equal('wallet_error');
  });
});

describe('page of an interactive authorization', () => {
  const returnTo = `${ENDPOINT}/return?auth_session=id.secret`;

  it('receives the auth_session and the return address', () => {
    for (const [url, start] of [
      ['https://x.example/', 'https://x.example/?return_to='],
      ['https://x.example/{auth_session}?a=b#c', 'https://x.example/id.secret?a=b&return_to='],
      ['https://x.example/?v={auth_session}&w={auth_session}', 'https://x.example/?v=id.secret&w=id.secret&return_to='],
    ] as const) {
      const address = webStepUrl(startedInteraction([visit(url)], WEB), ENDPOINT);
      expect(address.startsWith(start), address).to.equal(true);
      expect(new URL(address).searchParams.get('return_to')).to.equal(returnTo);
    }
  });

  it('is undefined while another action is pending', () => {
    for (const interaction of [
      startedInteraction([visit('https://x.example/')]),
      startedInteraction([visit('https://x.example/')], PRESENTATION),
      startedInteraction([show('a')], WEB),
      startedInteraction([], WEB),
    ]) {
      expect(outcome(() => webStepUrl(interaction, ENDPOINT))).to.equal('invalid_request');
    }
  });
});

const IA = 'urn:openid:dcp:ia:';
const IAE = 'urn:openid:dcp:iae:';
const DRAFTS: readonly InteractionDraft[] = ['ia', 'iae', 'plain'];

describe('interaction types of a wallet', () => {
  // biome-ignore format: a table
  const lists: [string, string | undefined, readonly string[] | string][] = [
    ['one', 'a', ['a']],
    ['several, with space around and none between', ' a ,b', ['a', 'b']],
    ['the same twice', 'a,a', ['a']],
    ['empty entries', ',a,,', ['a']],
    ['nothing', undefined, 'invalid_request'],
    ['commas', ',, ,', 'invalid_request'],
    ['more than any wallet has', 'a,'.repeat(1001), 'invalid_request'],
  ];
  for (const [description, text, expected] of lists) {
    it(`are parsed from ${description}`, () => {
      const parse = outcome(() => [...parseInteractionTypes(text)]);
      expect(parse).to.deep.equal(expected);
    });
  }

  // biome-ignore format: a table
  const choices: [string, string, readonly InteractionKind[], string][] = [
    ['the names it uses: current', `${IA}openid4vp_presentation`, ['presentation'], 'ia'],
    ['the names it uses: spring 2026', `${IAE}openid4vp_presentation`, ['presentation'], 'iae'],
    ['the names it uses: first', 'openid4vp_presentation', ['presentation'], 'plain'],
    ['the newest names', `openid4vp_presentation,${IAE}openid4vp_presentation,${IA}openid4vp_presentation`, ['presentation'], 'ia'],
    ['names that cover the required types', `${IA}openid4vp_presentation,openid4vp_presentation,redirect_to_web`, ['presentation', 'web'], 'plain'],
    ['the current name of the web', `${IA}auth_via_web`, ['web'], 'ia'],
    ['the name of the web of spring 2026', `${IAE}redirect_to_web`, ['web'], 'iae'],
    ['the newest names if no type is required', `redirect_to_web,${IAE}redirect_to_web`, [], 'iae'],
    ['the current names if no type is required and none is known', 'telepathy', [], 'ia'],
    ['none if a type is missing', `${IA}openid4vp_presentation`, ['presentation', 'web'], 'missing_interaction_type'],
    ['none if two drafts are mixed', `${IA}openid4vp_presentation,redirect_to_web`, ['presentation', 'web'], 'missing_interaction_type'],
    ['none for an unknown name', `${IA}redirect_to_web`, ['web'], 'missing_interaction_type'],
    ['none for names in the wrong case', 'OpenID4VP_Presentation', ['presentation'], 'missing_interaction_type'],
  ];
  for (const [description, types, required, expected] of choices) {
    it(`select ${description}`, () => {
      expect(outcome(() => chooseDraft(parseInteractionTypes(types), required))).to.equal(expected);
    });
  }

  it('are reported with the names of the wallet if they are missing', () => {
    const types = parseInteractionTypes('redirect_to_web');
    expect(() => chooseDraft(types, ['presentation', 'web'])).to.throw(/supports openid4vp_presentation$/);
  });

  it('include the web page by any of its names', () => {
    for (const web of [`${IA}auth_via_web`, `${IAE}redirect_to_web`, 'redirect_to_web']) {
      expect(supportsWeb(new Set([web, 'x'])), web).to.equal(true);
    }
    expect(supportsWeb(new Set([`${IA}openid4vp_presentation`, 'auth_via_web']))).to.equal(false);
  });
});

describe('drafts of interactive authorization', () => {
  it('name audiences by the origin, the current one also by the endpoint', () => {
    expect(DRAFTS.map((draft) => audiencesOf(draft, ENDPOINT))).to.deep.equal([
      ['ia:https://issuer.example', `ia:${ENDPOINT}`],
      ['iae:https://issuer.example'],
      ['iae:https://issuer.example'],
    ]);
    expect(audiencesOf('iae', 'https://issuer.example:8443/x')).to.deep.equal(['iae:https://issuer.example:8443']);
  });

  it('name response modes', () => {
    const modes = DRAFTS.map((draft) => [responseModeOf(draft, false), responseModeOf(draft, true)]);
    const olderModes = ['iae_post', 'iae_post.jwt'];
    expect(modes).to.deep.equal([['ia_post', 'ia_post.jwt'], olderModes, olderModes]);
  });

  it('name a session that is no longer valid', () => {
    expect(DRAFTS.map((draft) => sessionFailure(draft).code)).to.deep.equal(['invalid_session', 'invalid_request', 'invalid_request']);
    expect(sessionFailure().code).to.equal('invalid_session');
  });

  it('start with a request', () => {
    const interactionRequest = (draft: InteractionDraft) => interactionResponse(draft, 'web', 'a.b', { request_uri: 'urn:x' });
    const expected = { auth_session: 'a.b', request_uri: 'urn:x' };
    const status = 'require_interaction';
    expect(DRAFTS.map(interactionRequest)).to.deep.equal([
      { status: 401, body: { error: 'insufficient_authorization', interaction_type_required: `${IA}auth_via_web`, ...expected } },
      { status: 200, body: { status, type: `${IAE}redirect_to_web`, ...expected } },
      { status: 200, body: { status, type: 'redirect_to_web', ...expected } },
    ]);
  });

  it('return the code', () => {
    const olderModes = { status: 200, body: { status: 'ok', code: 'c' } };
    expect(DRAFTS.map((draft) => codeResponse(draft, 'c'))).to.deep.equal([
      { status: 200, body: { authorization_code: 'c' } },
      olderModes,
      olderModes,
    ]);
  });
});
