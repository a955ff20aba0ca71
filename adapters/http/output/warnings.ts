import { z } from 'zod';
import type { TenantCaller } from '../../../application/caller.ts';
import { type EditedKind, resourceOf } from '../../../domain/resources.ts';
import { type Profile, Warning, warningsOf } from '../../../domain/shared/finding.ts';

export const Warnings = z.array(Warning).describe('What was written all the same, although a wallet, a law or a reader will refuse it');

const WRITTEN = new Map<z.ZodObject, z.ZodObject>();

/** What a write answers with: the view of what was written, and its warnings. */
export function withWarnings(view: z.ZodType): z.ZodType {
  if (!(view instanceof z.ZodObject) || 'warnings' in view.shape) return view;
  const known = WRITTEN.get(view);
  if (known !== undefined) return known;
  const { id, description } = view.meta() ?? {};
  const extended = view.extend({ warnings: Warnings });
  const written = id === undefined ? extended : extended.meta({ id: `Written${id}`, description });
  WRITTEN.set(view, written);
  return written;
}

/** @param profile of the tenant, which decides which warnings there are; null where it has none. */
export function warningsFor(kind: EditedKind, stored: object, profile: Profile | null): readonly Warning[] {
  const { findings } = resourceOf(kind);
  if (findings === undefined) return [];
  return warningsOf(findings(stored as never, profile), profile);
}

/** @returns null for a caller that belongs to no tenant. */
export function profileOf(caller: unknown): Profile | null {
  const { configured } = caller as Partial<Pick<TenantCaller, 'configured'>>;
  return configured?.profile ?? null;
}
