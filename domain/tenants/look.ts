import type { z } from 'zod';
import { defined } from '../shared/defined.ts';
import type { DisplayInfo } from './display.ts';
import type { PageSettings } from './page-settings.ts';

/** How the pages of a tenant look, in all of its languages. */
export type TenantLook = PageSettings & {
  /** Where there is no display. */
  readonly name: string;
  readonly displays: readonly z.infer<typeof DisplayInfo>[];
};

type Registered = { readonly body?: { readonly privacy_policy?: string; readonly support_uri?: string } } | null | undefined;

type Configured = {
  readonly display: readonly z.infer<typeof DisplayInfo>[];
  readonly pages?: PageSettings | null | undefined;
  readonly registrationCert?: unknown;
};

/** @param certificates what registration certificates are ordered with, the one that counts first. */
export function lookOf(name: string, { display, pages, registrationCert }: Configured, certificates: readonly unknown[] = []): TenantLook {
  const bodies = [...certificates, registrationCert].map((certificate) => (certificate as Registered)?.body);
  const privacyUri = bodies.find((body) => body?.privacy_policy !== undefined)?.privacy_policy;
  const supportUri = bodies.find((body) => body?.support_uri !== undefined)?.support_uri;
  return { name, displays: display, ...defined({ privacyUri, supportUri }), ...(pages ?? {}) };
}
