import type { z } from 'zod';
import { defined } from '../shared/defined.ts';
import type { DisplayInfo } from './display.ts';
import type { PageSettings } from './page-settings.ts';

/** Branding of a tenant's pages, in all of its languages. */
export type TenantBranding = PageSettings & {
  /** Shown without a display. */
  readonly name: string;
  readonly displays: readonly z.infer<typeof DisplayInfo>[];
};

type RegistrationRequest = { readonly body?: { readonly privacy_policy?: string; readonly support_uri?: string } } | null | undefined;

type BrandingSource = {
  readonly display: readonly z.infer<typeof DisplayInfo>[];
  readonly pages?: PageSettings | null | undefined;
  readonly registrationCert?: unknown;
};

/** @param certificates bodies of registration certificate requests, by precedence. */
export function brandingOf(
  name: string,
  { display, pages, registrationCert }: BrandingSource,
  certificates: readonly unknown[] = [],
): TenantBranding {
  const bodies = [...certificates, registrationCert].map((certificate) => (certificate as RegistrationRequest)?.body);
  const privacyUri = bodies.find((body) => body?.privacy_policy !== undefined)?.privacy_policy;
  const supportUri = bodies.find((body) => body?.support_uri !== undefined)?.support_uri;
  return { name, displays: display, ...defined({ privacyUri, supportUri }), ...(pages ?? {}) };
}
