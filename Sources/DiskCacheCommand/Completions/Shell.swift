// SPDX-License-Identifier: Apache-2.0

/// The supported shells; their scripts call `diskcache complete` with the line up to the cursor.
enum Shell {
    static let scripts = ["bash": bashScript, "zsh": zshScript, "fish": fishScript]

    /// The script for bash, which requires only bash 4.3, and not the package bash-completion.
    ///
    /// It does not expand or execute any word of the line, and it quotes the proposals for the shell.
    private static let bashScript = #"""
        # Completes the words of diskcache in bash. Written by `diskcache completions bash`.

        # Joins the words up to the cursor, which bash also splits at : = and @. The last word is cur.
        __diskcache_words() {
            local rest=${COMP_LINE:0:COMP_POINT} piece spaces i
            words=()
            for ((i = 0; i <= COMP_CWORD; i++)); do
                piece=${COMP_WORDS[i]}
                spaces=${rest%%[![:space:]]*}
                rest=${rest#"$spaces"}
                if ((i == COMP_CWORD)); then piece=$rest; fi
                rest=${rest#"$piece"}
                if [[ -z $spaces && ${#words[@]} -gt 0 ]]; then
                    words[${#words[@]} - 1]+=$piece
                else
                    words+=("$piece")
                fi
            done
            cur=${words[${#words[@]} - 1]}
        }

        _diskcache() {
            local IFS=$' \t\n' program=$1 cur cut= breaks word kind help quoted
            local -a words line
            COMPREPLY=()
            __diskcache_words
            for word in "${words[@]:1}"; do
                IFS= read word <<<"$word"
                if [[ $word == '~/'* ]]; then word=$HOME/${word:2}; fi
                line+=("$word")
            done
            # The part that bash keeps: it has split the word there, but does not split after a backslash.
            breaks=${COMP_WORDBREAKS//[!:=@]/}
            if [[ -n $breaks && $cur != *\\[:=@]* ]]; then
                cut=${cur%"${cur##*["$breaks"]}"}
            fi
            {
                IFS= read -r kind
                while IFS=$'\t' read -r word help; do
                    printf -v quoted %q "$word"
                    # Not if the user quotes in another way, which readline would mix with this one.
                    if [[ $quoted == "$cur"* ]]; then COMPREPLY+=("${quoted#"$cut"}"); fi
                done
            } < <("$program" complete -- "${line[@]}" 2>/dev/null </dev/null)
            case $kind in
            directories*) compopt -o dirnames ;;
            "command $((${#line[@]} - 1))") mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
            files* | command*) compopt -o default ;;
            esac
        }

        complete -F _diskcache diskcache

        """#

    private static let zshScript = #"""
        #compdef diskcache
        # Completes the words of diskcache in zsh. Written by `diskcache completions zsh`.

        _diskcache() {
            local kind line
            local -a answer names lines
            answer=("${(@f)$($words[1] complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
            kind=$answer[1]
            shift answer
            case $kind in
            files*) compset -p ${kind#* }; _files ;;
            directories*) compset -p ${kind#* }; _files -/ ;;
            command*)
                shift $((${kind#* } + 1)) words
                (( CURRENT -= ${kind#* } + 1 ))
                if (( CURRENT == 1 )); then _command_names -e; else _normal; fi ;;
            *)
                for line in $answer; do
                    names+=("${line%%$'\t'*}")
                    lines+=("${line/$'\t'/  -- }")
                done
                compadd ${answer[(r)*$'\t'*]:+-l} -d lines -a names ;;
            esac
        }

        # Whether it is loaded by compinit or sourced.
        if [[ $funcstack[1] == _diskcache ]]; then _diskcache "$@"; else compdef _diskcache diskcache; fi

        """#

    private static let fishScript = #"""
        # Completes the words of diskcache in fish. Written by `diskcache completions fish`.

        function __diskcache_complete
            set -l words (commandline -opc)
            set -l last (commandline -ct)
            set -l answer ($words[1] complete -- $words[2..-1] "$last" 2>/dev/null </dev/null)
            set -l kind (string split ' ' -- $answer[1])
            switch "$kind[1]"
                case files directories
                    set -l lead (string sub -l $kind[2] -- "$last")
                    set -l typed (string sub -s (math $kind[2] + 1) -- "$last")
                    set -l paths
                    if test $kind[1] = files
                        set paths (__fish_complete_path "$typed")
                    else
                        set paths (__fish_complete_directories "$typed")
                    end
                    printf '%s\n' $lead$paths
                case command
                    # As if the command stood there alone.
                    set -e words[1..(math $kind[2] + 1)]
                    complete -C (string join ' ' -- (string escape -- $words) "$last")
                case '*'
                    printf '%s\n' $answer[2..-1]
            end
        end

        complete -c diskcache -f -a '(__diskcache_complete)'

        """#
}
