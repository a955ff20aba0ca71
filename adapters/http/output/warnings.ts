import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import { type EditedKind, resourceOf } from '../../../domain/resources.ts';
import { type Profile, Warning, warningsOf } from '../../../domain/shared/finding.ts';

export const Warnings = z.array(Warning).describe('Rules of wallets, verifiers or laws that the stored object violates');

const VIEWS_WITH_WARNINGS = new Map<z.ZodObject, z.ZodObject>();

/** Response schema of a write: the view of the resource, and its warnings. */
export function withWarnings(view: z.ZodType): z.ZodType {
  if (!(view instanceof z.ZodObject) || 'warnings' in view.shape) return view;
  const cachedView = VIEWS_WITH_WARNINGS.get(view);
  if (cachedView !== undefined) return cachedView;
  const { id, description } = view.meta() ?? {};
  const extended = view.extend({ warnings: Warnings });
  const writeView = id === undefined ? extended : extended.meta({ id: `Written${id}`, description });
  VIEWS_WITH_WARNINGS.set(view, writeView);
  return writeView;
}

/** @param profile of the tenant, which decides on the warnings; null if it has none. */
export function warningsFor(kind: EditedKind, resource: object, profile: Profile | null): readonly Warning[] {
  const { findings } = resourceOf(kind);
  if (findings === undefined) return [];
  return warningsOf(findings(resource as never, profile), profile);
}

/** @returns null for a caller without a tenant. */
export function profileOf(caller: unknown): Profile | null {
  const { tenant } = caller as Partial<Pick<TenantCaller, 'tenant'>>;
  return tenant?.profile ?? null;
}
