import { object, z } from 'zod';
import { Failure, type FieldError, invalidFields } from './failure.ts';

/** Sets of rules that a tenant can adopt. Configurations that violate them are rejected. */
export const PROFILES = ['haip', 'eu'] as const;
export const Profile = z.enum(PROFILES);
export type Profile = z.infer<typeof Profile>;

/** The European profile includes all rules of HAIP. */
const INCLUDED: Readonly<Record<Profile, readonly Profile[]>> = { haip: ['haip'], eu: ['haip', 'eu'] };

/** True if `profile` includes `rules`. @param profile null for a tenant without profile. */
export function includesProfile(profile: Profile | null, rules: Profile): boolean {
  return profile !== null && INCLUDED[profile].includes(rules);
}

/** A warning about a valid configuration that a wallet, a law or a verifier will reject in practice. */
export const Warning = object({
  rule: z.string().describe('Source of the rule, such as `RFC 9901 section 9.5`, or `HAIP 1.0 section 5.1` under a profile'),
  member: z.string().describe('Path of the property, dotted; empty for the whole document'),
  concerns: z.string().describe('Party that rejects it, or is harmed'),
  message: z.string().describe('Effect of the present value'),
  change: z.string().describe('What to change'),
}).meta({ id: 'Warning', description: 'Allowed, but some wallets or readers will reject it' });
export type Warning = z.infer<typeof Warning>;

/** A problem of a resource: a warning, or an error under the profiles in `refusedBy`. */
export type Finding = Omit<Warning, 'rule'> & { readonly refusedBy?: readonly Profile[] } & (
    | {
        /** A rule that applies to every tenant. */
        readonly rule: string;
        /** The section of HAIP, the ARF or a specification of EUDI with the same requirement; shown to tenants with a profile only. */
        readonly profileRule?: string;
      }
    | {
        readonly rule?: undefined;
        /** The only rule with this requirement, so that a tenant without a profile gets no warning. */
        readonly profileRule: string;
      }
  );

/** Receives findings of a write that do not follow from the stored document, such as those about a fetched trust list. */
export type ReportFindings = (findings: readonly Finding[]) => void;

/** @param profile of the tenant; null without one. @returns violations of the profile as field errors. */
export function profileViolations(findings: readonly Finding[], profile: Profile | null): FieldError[] {
  return findings
    .filter((finding) => isRejected(finding, profile))
    .map((finding) => ({
      path: finding.member,
      message: `profile ${profile} (${rulesOf(finding)}): ${finding.message}; ${finding.change}`,
    }));
}

export function isRejected({ refusedBy = [] }: Finding, profile: Profile | null): boolean {
  return refusedBy.some((rules) => includesProfile(profile, rules));
}

/** The rules of a finding for a tenant with a profile. */
function rulesOf({ profileRule, rule }: Finding): string {
  return [profileRule, rule].filter((ruleName) => ruleName !== undefined).join(', ');
}

/** @throws Failure `invalid_input` with each property and the rule that it violates. */
export function assertConformsToProfile(profile: Profile | null, findings: readonly Finding[]): void {
  const faults = profileViolations(findings, profile);
  if (faults.length > 0) throw invalidFields(faults);
}

/** Limit of the problems that are reported at once. */
const MAX_FAULTS = 50;

/**
 * Validates all configurations of a tenant that adopts a profile.
 * @param faults by the address of each configuration.
 * @throws Failure `conflict` with these problems.
 */
export function assertNoProfileViolations(profile: Profile, faults: readonly FieldError[]): void {
  if (faults.length === 0) return;
  throw new Failure('conflict', {
    message: `the configuration of the tenant violates the profile ${profile}; change it first`,
    errors: faults.slice(0, MAX_FAULTS),
  });
}

/**
 * Warnings of a write; violations of the tenant's profile were rejected before. A tenant without a profile sees neither expectations nor
 * sections of HAIP, the ARF and the specifications of EUDI.
 * @param profile of the tenant; null without one.
 */
export function warningsOf(findings: readonly Finding[], profile: Profile | null): Warning[] {
  return findings.flatMap((finding) => {
    const { refusedBy: _refusedBy, profileRule: _profileRule, rule, ...warning } = finding;
    if (profile !== null) return [{ rule: rulesOf(finding), ...warning }];
    return rule === undefined ? [] : [{ rule, ...warning }];
  });
}
