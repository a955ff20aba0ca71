import { z } from 'zod';
import type { TenantCaller } from '../../application/caller.ts';
import { type EditedKind, resourceOf } from '../../domain/resources.ts';
import { Warning, warningsOf } from '../../domain/shared/finding.ts';

export const Warnings = z
  .array(Warning)
  .describe('What was written all the same, although a wallet, a law or a reader will refuse it');

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

/** @param caller whose tenant's profile says what was left to warn of. */
export function warningsFor(kind: EditedKind, stored: object, caller: unknown): readonly Warning[] {
  const { findings } = resourceOf(kind);
  if (findings === undefined) return [];
  const { configured } = caller as Partial<Pick<TenantCaller, 'configured'>>;
  return warningsOf(findings(stored as never, configured?.profile ?? null));
}
