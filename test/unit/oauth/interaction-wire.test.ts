import { expect } from 'chai';
import {
  audiencesOf,
  chooseWire,
  codeIssued,
  type InteractionKind,
  type InteractionWire,
  interactionRequired,
  listsWeb,
  readInteractionTypes,
  responseModeOf,
  sessionFailure,
} from '../../../domain/oauth/interaction-wire.ts';
import { outcomeOf as outcome } from '../../support/failure-code.ts';

const ENDPOINT = 'https://issuer.example/acme/interactive-authorization';
const IA = 'urn:openid:dcp:ia:';
const IAE = 'urn:openid:dcp:iae:';
const WIRES: readonly InteractionWire[] = ['ia', 'iae', 'plain'];

describe('interaction types of a wallet', () => {
  // biome-ignore format: a table
  const lists: [string, string | undefined, readonly string[] | string][] = [
    ['one', 'a', ['a']],
    ['several, with space around and none between', ' a ,b', ['a', 'b']],
    ['the same twice', 'a,a', ['a']],
    ['empty entries', ',a,,', ['a']],
    ['nothing', undefined, 'invalid_request'],
    ['commas', ',, ,', 'invalid_request'],
    ['more than anybody has', 'a,'.repeat(1001), 'invalid_request'],
  ];
  for (const [what, text, expected] of lists) {
    it(`are read from ${what}`, () => {
      const read = outcome(() => [...readInteractionTypes(text)]);
      expect(read).to.deep.equal(expected);
    });
  }

  // biome-ignore format: a table
  const choices: [string, string, readonly InteractionKind[], string][] = [
    ['the names it uses: current', `${IA}openid4vp_presentation`, ['presentation'], 'ia'],
    ['the names it uses: spring 2026', `${IAE}openid4vp_presentation`, ['presentation'], 'iae'],
    ['the names it uses: first', 'openid4vp_presentation', ['presentation'], 'plain'],
    ['the newest names', `openid4vp_presentation,${IAE}openid4vp_presentation,${IA}openid4vp_presentation`, ['presentation'], 'ia'],
    ['names that say all that is needed', `${IA}openid4vp_presentation,openid4vp_presentation,redirect_to_web`, ['presentation', 'web'], 'plain'],
    ['the current name of the web', `${IA}auth_via_web`, ['web'], 'ia'],
    ['the name of the web of spring 2026', `${IAE}redirect_to_web`, ['web'], 'iae'],
    ['the newest names when nothing is needed', `redirect_to_web,${IAE}redirect_to_web`, [], 'iae'],
    ['the current names when nothing is needed and nothing known', 'telepathy', [], 'ia'],
    ['nothing when a type is missing', `${IA}openid4vp_presentation`, ['presentation', 'web'], 'missing_interaction_type'],
    ['nothing when two drafts are mixed', `${IA}openid4vp_presentation,redirect_to_web`, ['presentation', 'web'], 'missing_interaction_type'],
    ['nothing for a name that no draft had', `${IA}redirect_to_web`, ['web'], 'missing_interaction_type'],
    ['nothing for names of the wrong case', 'OpenID4VP_Presentation', ['presentation'], 'missing_interaction_type'],
  ];
  for (const [what, types, needed, expected] of choices) {
    it(`choose ${what}`, () => {
      expect(outcome(() => chooseWire(readInteractionTypes(types), needed))).to.equal(expected);
    });
  }

  it('tell which are missing, in the names that the wallet uses', () => {
    const types = readInteractionTypes('redirect_to_web');
    expect(() => chooseWire(types, ['presentation', 'web'])).to.throw(/supports openid4vp_presentation$/);
  });

  it('include the web by any of its names', () => {
    for (const web of [`${IA}auth_via_web`, `${IAE}redirect_to_web`, 'redirect_to_web']) {
      expect(listsWeb(new Set([web, 'x'])), web).to.equal(true);
    }
    expect(listsWeb(new Set([`${IA}openid4vp_presentation`, 'auth_via_web']))).to.equal(false);
  });
});

describe('the forms of interactive authorization', () => {
  it('name audiences by the origin, the current one also by the endpoint', () => {
    expect(WIRES.map((wire) => audiencesOf(wire, ENDPOINT))).to.deep.equal([
      ['ia:https://issuer.example', `ia:${ENDPOINT}`],
      ['iae:https://issuer.example'],
      ['iae:https://issuer.example'],
    ]);
    expect(audiencesOf('iae', 'https://issuer.example:8443/x')).to.deep.equal([
      'iae:https://issuer.example:8443',
    ]);
  });

  it('name response modes', () => {
    const modes = WIRES.map((wire) => [responseModeOf(wire, false), responseModeOf(wire, true)]);
    const earlier = ['iae_post', 'iae_post.jwt'];
    expect(modes).to.deep.equal([['ia_post', 'ia_post.jwt'], earlier, earlier]);
  });

  it('name a session that counts no more', () => {
    expect(WIRES.map((wire) => sessionFailure(wire).code)).to.deep.equal([
      'invalid_session',
      'invalid_request',
      'invalid_request',
    ]);
    expect(sessionFailure().code).to.equal('invalid_session');
  });

  it('ask for something first', () => {
    const ask = (wire: InteractionWire) => interactionRequired(wire, 'web', 'a.b', { request_uri: 'urn:x' });
    const rest = { auth_session: 'a.b', request_uri: 'urn:x' };
    const status = 'require_interaction';
    expect(WIRES.map(ask)).to.deep.equal([
      {
        status: 401,
        body: {
          error: 'insufficient_authorization',
          interaction_type_required: `${IA}auth_via_web`,
          ...rest,
        },
      },
      { status: 200, body: { status, type: `${IAE}redirect_to_web`, ...rest } },
      { status: 200, body: { status, type: 'redirect_to_web', ...rest } },
    ]);
  });

  it('hand out the code', () => {
    const earlier = { status: 200, body: { status: 'ok', code: 'c' } };
    expect(WIRES.map((wire) => codeIssued(wire, 'c'))).to.deep.equal([
      { status: 200, body: { authorization_code: 'c' } },
      earlier,
      earlier,
    ]);
  });
});
