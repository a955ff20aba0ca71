import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { type Pasted, parsePasted } from '../../domain/verification/trial/pasted.ts';
import { pairsOf, type Trial, trialOf } from '../../domain/verification/trial/trial.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { compiledQuery } from './compiled-query.ts';
import { assertMaySee, unknownConfiguration } from './presentation-configurations.ts';
import { PresentationVerifier } from './presentation-verifier.ts';

/** A presentation may be held against many queries; each costs a signature and a look at a status list. */
const MAX_PAIRS = 50;

/** Holds what somebody pastes against a question, without a wallet. Nothing of it is stored or handed on. */
export class TryPresentation extends needs({ clock: Clock, presentationVerifier: PresentationVerifier }) {
  /**
   * @param pasted see `parsePasted`.
   * @returns paths of claims, never their values.
   * @throws Failure `not_found` also for one outside the client's restriction, `invalid_input` for what is no presentation, or too many.
   */
  async execute(caller: TenantCaller, id: string, pasted: string): Promise<Trial> {
    const { clock, presentationVerifier } = this.ports;
    const { configured } = caller;
    assertMaySee(caller, id);
    const configuration = await configured.presentationConfiguration(id);
    if (configuration === undefined) throw unknownConfiguration(id);
    const query = await compiledQuery(configured, id, configuration.dcql_query as unknown as JsonObject);
    const pairs = pairsOf(query, read(pasted));
    if (pairs.reduce((sum, { queryIds }) => sum + queryIds.length, 0) > MAX_PAIRS)
      throw invalidInput('presentation', `more than ${MAX_PAIRS} pairs of a presentation and a query; paste fewer`);
    const trial = { configured, configurationId: id, now: clock.now() };
    const checked = [];
    for (const { pasted: one, queryIds } of pairs) {
      const tried = queryIds.flatMap((queryId) => {
        const own = query.credentials.get(queryId);
        return own === undefined ? [] : [{ query: own, text: one.text }];
      });
      checked.push(await presentationVerifier.try(trial, tried));
    }
    return trialOf(query, pairs, checked);
  }
}

function read(pasted: string): readonly Pasted[] {
  try {
    return parsePasted(pasted);
  } catch (error) {
    if (error instanceof Refusal) throw invalidInput('presentation', error.message.replace(/^malformed: /, ''));
    throw error;
  }
}
