import { hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { Failure } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';
import type { VerificationRequest } from '../verification/verification-request.ts';
import type { InteractionKind, InteractionWire } from './interaction-wire.ts';
import type { InteractiveAction } from './interactive-action.ts';
import { verifies } from './pkce.ts';

/** A presentation that the wallet was asked for. All that decides is kept from the moment of asking. */
export type PendingPresentation = Pick<
  VerificationRequest,
  | 'dcqlQuery'
  | 'nonce'
  | 'encryption'
  | 'transactionData'
  | 'transactionDataObjects'
  | 'transactionDataElements'
  | 'transactionDataSchemas'
  | 'policy'
> & {
  readonly kind: 'presentation';
  /** The presentation configuration. */
  readonly configurationId: string;
  readonly since: Date;
  readonly until: Date;
};

/** A page of the customer that the user was sent to. */
export type PendingWebStep = {
  readonly kind: 'web';
  readonly since: Date;
  readonly until: Date;
  /** What browser and customer know the step by. It proves nothing to the wallet's endpoint. */
  readonly pageHandle: string;
  /** Whether the browser has come back. */
  readonly isReturned: boolean;
  /** SHA-256 of the cookie of the browser that was sent there last, base64url; nobody was sent before it is set. */
  readonly browserHash?: string;
};

/** Where an interactive authorization stands (OpenID4VCI 1.1 section 6). */
export type Interaction = {
  readonly wire: InteractionWire;
  /** Whether the wallet proved its DPoP key at the start, and therefore has to with each request. */
  readonly provesKey: boolean;
  /** What is left to do, the present one first. */
  readonly actions: readonly InteractiveAction[];
  /** What the wallet has to answer; absent while a backend is asked. */
  readonly pending?: PendingPresentation | PendingWebStep;
  /** What was presented so far: `id` of the query, `values`, and who signed them. */
  readonly presented: readonly JsonObject[];
  /** Marks of the actions that are done. */
  readonly done: readonly string[];
};

export function kindOf(action: InteractiveAction): InteractionKind {
  return action.type === 'openid4vp_presentation' ? 'presentation' : 'web';
}

type Actionable = {
  readonly id: string;
  readonly iaeActions?: readonly InteractiveAction[] | null | undefined;
};

/** The actions of the requested configurations, one after the other; what two of them ask for is asked once. */
export function requiredActions(configurations: readonly Actionable[], requestedIds: readonly string[]): readonly InteractiveAction[] {
  const all = requestedIds.flatMap((id) => configurations.find((entry) => entry.id === id)?.iaeActions ?? []);
  const aims = all.map(aimOf);
  return all.filter((_, index) => aims.indexOf(aims[index] ?? '') === index);
}

/** Two actions with one aim differ by their texts at most. */
function aimOf(action: InteractiveAction): string {
  return action.type === 'openid4vp_presentation'
    ? JSON.stringify([action.type, action.presentationConfigId])
    : JSON.stringify([action.type, action.url, action.callbackUrl ?? null]);
}

/** What an action is remembered by: the one who changes what it aims at asks for another one. */
function markOf(action: InteractiveAction): string {
  return hash('sha256', aimOf(action), 'base64url').slice(0, 22);
}

/**
 * Whether everything that a configuration asks for now was done on the way to a token. It may ask for more since the
 * token or its grant came to be, and then they count no more for it.
 * @param marks of the actions that were done.
 */
export function isAllDone({ iaeActions }: Actionable, marks: readonly string[] = []): boolean {
  return (iaeActions ?? []).every((action) => marks.includes(markOf(action)));
}

export function beginInteraction(start: Pick<Interaction, 'wire' | 'provesKey' | 'actions'>): Interaction {
  return { ...start, presented: [], done: [] };
}

/** Nothing can be answered until the next action is asked for. */
export function suspend({ pending: _, ...rest }: Interaction): Interaction {
  return rest;
}

/** The present action is done. @param credentials results of a presentation; those without values are left out. */
export function completeAction(interaction: Interaction, credentials: readonly JsonObject[] = []): Interaction {
  const { presented, done } = interaction;
  const [action, ...actions] = interaction.actions;
  const values = credentials.flatMap(({ id, values, issuer }) =>
    id === undefined || values === undefined ? [] : [{ id, values, ...defined({ issuer }) }],
  );
  return {
    ...suspend(interaction),
    actions,
    presented: [...presented, ...values],
    done: action === undefined ? done : [...done, markOf(action)],
  };
}

/** What a wallet sends for what it was asked. */
export type InteractionAnswer =
  | { readonly kind: 'presentation'; readonly pending: PendingPresentation; readonly response: string }
  | { readonly kind: 'web'; readonly pending: PendingWebStep };

/**
 * Reads an intermediate request.
 * @param codeChallenge of the initial request.
 * @throws Failure `invalid_request` for parameters that do not fit what is pending, `invalid_grant` for a browser that
 *   came back to a wallet that did not begin (OpenID4VCI 1.1 section 6.2.1.2).
 */
export function parseAnswer(
  pending: PendingPresentation | PendingWebStep,
  form: Readonly<Record<string, string>>,
  codeChallenge: string | undefined,
): InteractionAnswer {
  const { openid4vp_response: response, code_verifier: verifier } = form;
  if (pending.kind === 'presentation') {
    if (response === undefined) throw new Failure('invalid_request', 'openid4vp_response is missing');
    return { kind: 'presentation', pending, response };
  }
  if (response !== undefined) throw new Failure('invalid_request', 'no presentation was asked for');
  if (!pending.isReturned) throw new Failure('invalid_request', 'the user has not come back from the web');
  if (codeChallenge === undefined || !verifies(verifier, codeChallenge)) {
    throw new Failure('invalid_grant', 'code_verifier is missing or wrong');
  }
  return { kind: 'web', pending };
}

/**
 * Where the browser goes: to the customer's page, which learns where to send it afterwards.
 * @throws Failure `invalid_request` when no page is pending.
 */
export function pageOf({ actions: [action], pending }: Interaction, endpoint: string): string {
  if (action?.type !== 'redirect_to_web' || pending?.kind !== 'web') throw new Failure('invalid_request', 'there is no page to go to');
  const address = new URL(action.url.replaceAll('{auth_session}', pending.pageHandle));
  const returnTo = new URL(`${endpoint}/return`);
  returnTo.searchParams.append('auth_session', pending.pageHandle);
  address.searchParams.append('return_to', returnTo.href);
  return address.href;
}
