import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import { type PastedPresentation, parsePasted } from '../../domain/verification/trial/pasted-presentation.ts';
import { buildTrial, pairWithQueries, type Trial } from '../../domain/verification/trial/trial.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { compiledQuery } from './compiled-query.ts';
import { assertMaySee, unknownConfiguration } from './presentation-configurations.ts';
import { PresentationVerifier } from './presentation-verifier.ts';

/** Limit of pairs of presentation and query; each costs a signature and a status list check. */
const MAX_PAIRS = 50;

/** Tests a pasted presentation with the query of a configuration, without a wallet. Nothing is stored or passed on. */
export class TryPresentation extends needs({ clock: Clock, presentationVerifier: PresentationVerifier }) {
  /**
   * @param pasted see `parsePasted`.
   * @returns paths of claims, never their values.
   * @throws Failure `not_found` also for one outside the client's restriction, `invalid_input` for an invalid input or too many pairs.
   */
  async execute(caller: TenantCaller, id: string, pasted: string): Promise<Trial> {
    const { clock, presentationVerifier } = this.ports;
    const { tenant } = caller;
    assertMaySee(caller, id);
    const configuration = await tenant.presentationConfiguration(id);
    if (configuration === undefined) throw unknownConfiguration(id);
    const query = await compiledQuery(tenant, id, configuration.dcql_query as unknown as JsonObject);
    const pairs = pairWithQueries(query, parseInput(pasted));
    if (pairs.reduce((sum, { queryIds }) => sum + queryIds.length, 0) > MAX_PAIRS)
      throw invalidInput('presentation', `more than ${MAX_PAIRS} pairs of a presentation and a query; paste fewer`);
    const trial = { tenant, configurationId: id, now: clock.now() };
    const checked = [];
    for (const { pasted: pastedPresentation, queryIds } of pairs) {
      const presentations = queryIds.flatMap((queryId) => {
        const credentialQuery = query.credentials.get(queryId);
        return credentialQuery === undefined ? [] : [{ query: credentialQuery, text: pastedPresentation.text }];
      });
      checked.push(await presentationVerifier.try(trial, presentations));
    }
    return buildTrial(query, pairs, checked);
  }
}

function parseInput(pasted: string): readonly PastedPresentation[] {
  try {
    return parsePasted(pasted);
  } catch (error) {
    if (error instanceof Refusal) throw invalidInput('presentation', error.message.replace(/^malformed: /, ''));
    throw error;
  }
}
