import { hash } from 'node:crypto';
import { defined } from '../shared/defined.ts';
import { Failure } from '../shared/failure.ts';
import type { JsonObject } from '../shared/json.ts';
import type { VerificationRequest } from '../verification/verification-request.ts';
import type { InteractionDraft, InteractionKind } from './interaction-draft.ts';
import type { InteractiveAction } from './interactive-action.ts';
import { verifyPkce } from './pkce.ts';

/** A pending presentation request. The data for its verification is stored when the request is created. */
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
> & { readonly kind: 'presentation'; readonly configurationId: string; readonly since: Date; readonly until: Date };

/** A pending visit of the user to a page of the operator. */
export type PendingWebStep = {
  readonly kind: 'web';
  readonly since: Date;
  readonly until: Date;
  /** Identifies the step for the browser and the operator's backend. It does not authenticate at the wallet's endpoint. */
  readonly pageHandle: string;
  /** True if the browser returned. */
  readonly hasReturned: boolean;
  /** SHA-256 of the cookie of the browser that was redirected last, base64url; unset before the first redirect. */
  readonly browserHash?: string;
};

/** State of an interactive authorization (OpenID4VCI 1.1 section 6). */
export type Interaction = {
  readonly draft: InteractionDraft;
  /** True if the wallet proved its DPoP key at the start, and therefore must prove it with each request. */
  readonly provesKey: boolean;
  /** Remaining actions; the first one is pending. */
  readonly actions: readonly InteractiveAction[];
  /** The step that the wallet must answer; absent while a backend is called. */
  readonly pending?: PendingPresentation | PendingWebStep;
  /** Presented credentials: `id` of the query, `values`, and their issuer. */
  readonly presented: readonly JsonObject[];
  /** Fingerprints of the completed actions. */
  readonly done: readonly string[];
};

export function kindOf(action: InteractiveAction): InteractionKind {
  return action.type === 'openid4vp_presentation' ? 'presentation' : 'web';
}

type Actionable = { readonly id: string; readonly iaeActions?: readonly InteractiveAction[] | null | undefined };

/** The actions of the requested configurations in order, without duplicates. */
export function requiredActions(configurations: readonly Actionable[], requestedIds: readonly string[]): readonly InteractiveAction[] {
  const actions = requestedIds.flatMap((id) => configurations.find((entry) => entry.id === id)?.iaeActions ?? []);
  const targets = actions.map(actionTarget);
  return actions.filter((_, index) => targets.indexOf(targets[index] ?? '') === index);
}

/** Actions with an equal target differ by their texts at most. */
function actionTarget(action: InteractiveAction): string {
  return action.type === 'openid4vp_presentation'
    ? JSON.stringify([action.type, action.presentationConfigId])
    : JSON.stringify([action.type, action.url, action.callbackUrl ?? null]);
}

/** Fingerprint of a completed action: an action with a changed target counts as another action. */
function actionFingerprint(action: InteractiveAction): string {
  return hash('sha256', actionTarget(action), 'base64url').slice(0, 22);
}

/**
 * True if all actions that a configuration requires now were completed before the token was issued. The configuration may have gained
 * actions since; then the token is not sufficient.
 * @param fingerprints of the completed actions.
 */
export function areActionsDone({ iaeActions }: Actionable, fingerprints: readonly string[] = []): boolean {
  return (iaeActions ?? []).every((action) => fingerprints.includes(actionFingerprint(action)));
}

export function startInteraction(start: Pick<Interaction, 'draft' | 'provesKey' | 'actions'>): Interaction {
  return { ...start, presented: [], done: [] };
}

/** Removes the pending step; the wallet cannot answer until the next action is requested. */
export function withoutPending({ pending: _, ...interaction }: Interaction): Interaction {
  return interaction;
}

/** Completes the current action. @param credentials results of a presentation; those without values are omitted. */
export function completeAction(interaction: Interaction, credentials: readonly JsonObject[] = []): Interaction {
  const { presented, done } = interaction;
  const [action, ...actions] = interaction.actions;
  const values = credentials.flatMap(({ id, values, issuer }) =>
    id === undefined || values === undefined ? [] : [{ id, values, ...defined({ issuer }) }],
  );
  return {
    ...withoutPending(interaction),
    actions,
    presented: [...presented, ...values],
    done: action === undefined ? done : [...done, actionFingerprint(action)],
  };
}

/** A wallet's answer to the pending step. */
export type InteractionAnswer =
  | { readonly kind: 'presentation'; readonly pending: PendingPresentation; readonly response: string }
  | { readonly kind: 'web'; readonly pending: PendingWebStep };

/**
 * Parses an intermediate request.
 * @param codeChallenge of the initial request.
 * @throws Failure `invalid_request` for parameters that do not match the pending step, `invalid_grant` if the browser returned to a wallet
 * other than the one that started the authorization (OpenID4VCI 1.1 section 6.2.1.2).
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
  if (response !== undefined) throw new Failure('invalid_request', 'no presentation was requested');
  if (!pending.hasReturned) throw new Failure('invalid_request', 'the user has not returned from the web page');
  if (codeChallenge === undefined || !verifyPkce(verifier, codeChallenge)) {
    throw new Failure('invalid_grant', 'code_verifier is missing or wrong');
  }
  return { kind: 'web', pending };
}

/**
 * The operator's page to which the browser is redirected; its `return_to` parameter is the return address.
 * @throws Failure `invalid_request` when no page is pending.
 */
export function webStepUrl({ actions: [action], pending }: Interaction, endpoint: string): string {
  if (action?.type !== 'redirect_to_web' || pending?.kind !== 'web')
    throw new Failure('invalid_request', 'the authorization has no pending page');
  const address = new URL(action.url.replaceAll('{auth_session}', pending.pageHandle));
  const returnTo = new URL(`${endpoint}/return`);
  returnTo.searchParams.append('auth_session', pending.pageHandle);
  address.searchParams.append('return_to', returnTo.href);
  return address.href;
}
