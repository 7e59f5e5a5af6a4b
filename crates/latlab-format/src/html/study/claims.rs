//! Claims of a paper and their verdicts.

use crate::study::{bounds, grounds};
use crate::with_micro;
use latlab_core::study::claim::{ClaimVerdict, Judgement};
use latlab_core::study::findings::Findings;
use maud::{Markup, html};

/// Numbers of claims by verdict, as one sentence; nothing if the study has no claims.
pub(super) fn summary(findings: &Findings<'_>) -> Markup {
    html! {
        @if !findings.claims.is_empty() { p class="verdict" { (sentence(findings)) } }
    }
}

fn sentence(findings: &Findings<'_>) -> String {
    let count = |wanted: fn(&ClaimVerdict) -> bool| {
        findings.claims.iter().filter(|(_, judgement)| wanted(&judgement.verdict)).count()
    };
    let all = findings.claims.len();
    let holding = match count(|verdict| *verdict == ClaimVerdict::Holds) {
        1 if all == 1 => "The claim holds".to_owned(),
        holds if holds == all => format!("All {all} claims hold"),
        1 => format!("1 of {all} claims holds"),
        holds => format!("{holds} of {all} claims hold"),
    };
    let others = [
        (
            count(|verdict| *verdict == ClaimVerdict::ByConstruction),
            ["holds by construction", "hold by construction"],
        ),
        (count(|verdict| *verdict == ClaimVerdict::Differs), ["differs", "differ"]),
        (
            count(|verdict| *verdict == ClaimVerdict::NoLongerHolds),
            ["no longer holds", "no longer hold"],
        ),
        (
            count(|verdict| matches!(verdict, ClaimVerdict::NotMeasured(_))),
            ["was not measured", "were not measured"],
        ),
    ];
    let others = others.iter().filter(|(number, _)| *number > 0);
    let others = others.map(|(number, [one, several])| {
        format!(", {number} {}", if *number == 1 { one } else { several })
    });
    std::iter::once(holding).chain(others).collect()
}

/// Each claim with its verdict and the reasons for it; nothing if the study has no claims.
pub(super) fn list(findings: &Findings<'_>) -> Markup {
    html! {
        @if !findings.claims.is_empty() {
            ul class="claims" {
                @for (claim, judgement) in &findings.claims {
                    li {
                        (badge(judgement))
                        div {
                            p {
                                (claim.says)
                                @if !claim.source.is_empty() {
                                    " " span class="where" { (claim.source) }
                                }
                            }
                            @if !claim.quote.is_empty() { p class="ground" { "“" (claim.quote) "”" } }
                            @for line in bounds(claim) {
                                p class="ground" { "bound: " (with_micro(&line)) }
                            }
                            @for line in grounds(&claim.text, &claim.why, judgement) {
                                p class="ground" { (with_micro(&line)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn badge(judgement: &Judgement) -> Markup {
    let (class, mark) = match judgement.verdict {
        ClaimVerdict::Holds => ("badge holds", "✓"),
        ClaimVerdict::Differs | ClaimVerdict::NoLongerHolds => ("badge differs", "✗"),
        ClaimVerdict::ByConstruction => ("badge missing", "="),
        ClaimVerdict::NotMeasured(_) => ("badge missing", "–"),
    };
    html! {
        span class=(class) { span aria-hidden="true" { (mark) } " " (judgement.word()) }
    }
}
